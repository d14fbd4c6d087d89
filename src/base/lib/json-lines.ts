/**
 * JsonLines: a stream of JSON messages, one a line, as they arrive in pieces.
 */

const LINE_END = 0x0a;

export class JsonLines {
  readonly #onMessage: (message: unknown) => void;
  readonly #line: ReplyBytes;

  /** `bytesMax`: the most bytes of one line. */
  constructor(bytesMax: number, onMessage: (message: unknown) => void) {
    this.#line = new ReplyBytes(bytesMax);
    this.#onMessage = onMessage;
  }

  /** Returns what is wrong with the stream; it cannot continue then. */
  push(chunk: Buffer): "too long" | "no JSON" | undefined {
    let rest = chunk;
    for (let at = rest.indexOf(LINE_END); at !== -1; at = rest.indexOf(LINE_END)) {
      if (!this.#line.push(rest.subarray(0, at))) return "too long";
      rest = rest.subarray(at + 1);
      if (!this.#parse(this.#line.take())) return "no JSON";
    }
    return this.#line.push(rest) ? undefined : "too long";
  }

  #parse(line: string): boolean {
    if (line === "") return true;
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      return false;
    }
    this.#onMessage(message);
    return true;
  }
}

/**
 * Collects what arrives in pieces, up to a limit. The memory that it takes follows from the bytes alone, not
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

  /** Returns the text so far, and begins a new one. */
  take(): string {
    const text = this.#block.toString("utf8", 0, this.#length);
    this.#length = 0;
    if (this.#block.length > FIRST_BYTES) this.#block = Buffer.alloc(0);
    return text;
  }
}
