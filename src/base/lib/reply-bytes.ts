/**
 * ReplyBytes: collects what arrives in pieces, up to a limit. The memory that it takes follows from the bytes alone, not
 * from the number of pieces.
 */
const FIRST_BYTES = 4096;

export class ReplyBytes {
  readonly #bytesMax: number;
  #block = Buffer.alloc(0);
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Returns whether it fits. */
  push(piece: Uint8Array): boolean {
    const length = this.#length + piece.length;
    if (length > this.#bytesMax) return false;
    if (length > this.#block.length) {
      const block = Buffer.allocUnsafe(Math.max(FIRST_BYTES, length, 2 * this.#block.length));
      this.#block.copy(block, 0, 0, this.#length);
      this.#block = block;
    }
    this.#block.set(piece, this.#length);
    this.#length = length;
    return true;
  }

  /** The text so far; it starts again after it. */
  take(): string {
    const text = this.#block.toString("utf8", 0, this.#length);
    this.#length = 0;
    if (this.#block.length > FIRST_BYTES) this.#block = Buffer.alloc(0);
    return text;
  }
}
