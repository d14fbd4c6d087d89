/**
 * Messages out of a byte stream: two bytes of length, then the message. The buffer grows with what has arrived, not with
 * what a length announces, so that a client pays with its own bytes for ours; it doubles, so that dripping stays cheap.
 */
const LENGTH_BYTES = 2;
const FIRST_BYTES = 512;
/** A buffer larger than this is given back when nothing is left in it. */
const KEPT_BYTES = 4096;

export class StreamReader {
  #buffer = Buffer.allocUnsafe(FIRST_BYTES);
  #start = 0;
  #end = 0;

  /** Memory that it holds. */
  get bytes(): number {
    return this.#buffer.length;
  }

  /** Whether `next` has something to give. */
  get hasWhole(): boolean {
    const available = this.#end - this.#start;
    return available >= LENGTH_BYTES && available >= LENGTH_BYTES + this.#buffer.readUInt16BE(this.#start);
  }

  push(chunk: Uint8Array): void {
    const kept = this.#end - this.#start;
    if (this.#end + chunk.length > this.#buffer.length) {
      const needed = kept + chunk.length;
      const target = needed > this.#buffer.length ? Math.max(needed, this.#buffer.length * 2) : this.#buffer.length;
      const moved = target === this.#buffer.length ? this.#buffer : Buffer.allocUnsafe(target);
      this.#buffer.copy(moved, 0, this.#start, this.#end);
      this.#buffer = moved;
      this.#start = 0;
      this.#end = kept;
    }
    this.#buffer.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  /** The next whole message, valid until the next push; undefined while there is none. */
  next(): Buffer | undefined {
    if (!this.hasWhole) {
      // Whoever still looks at the last message holds its memory; it is not ours to keep.
      const isEmpty = this.#start === this.#end;
      if (isEmpty && this.#buffer.length > KEPT_BYTES) this.#buffer = Buffer.allocUnsafe(FIRST_BYTES);
      return undefined;
    }
    const length = this.#buffer.readUInt16BE(this.#start);
    const message = this.#buffer.subarray(this.#start + LENGTH_BYTES, this.#start + LENGTH_BYTES + length);
    this.#start += LENGTH_BYTES + length;
    if (this.#start === this.#end) this.#start = this.#end = 0;
    return message;
  }
}
