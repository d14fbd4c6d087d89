/**
 * StreamReader: splits a byte stream into messages: two bytes of length, then the message. The buffer grows with what
 * has arrived and not with the announced length, so that a client pays for our memory with its own bytes. It doubles,
 * so that receiving byte by byte stays cheap.
 */
const LENGTH_BYTES = 2;
const FIRST_BYTES = 512;
/** A buffer larger than this is released when it becomes empty. */
const KEPT_BYTES = 4096;

export class StreamReader {
  #buffer = Buffer.allocUnsafe(FIRST_BYTES);
  #start = 0;
  #end = 0;

  /** Size of its buffer. */
  get bytes(): number {
    return this.#buffer.length;
  }

  /** Whether `next` returns a message. */
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

  /** The next complete message, valid until the next push; undefined while there is none. */
  next(): Buffer | undefined {
    if (!this.hasWhole) {
      // A caller that still uses the last message keeps its memory alive; we need not.
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

export function withLength(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(LENGTH_BYTES + message.length);
  bytes.writeUInt16BE(message.length, 0);
  bytes.set(message, LENGTH_BYTES);
  return bytes;
}
