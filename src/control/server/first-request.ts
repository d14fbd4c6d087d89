/**
 * FirstRequest: a connection of which only the first request reaches the HTTP server, without its body. Node reads up to 64 KB
 * at once, and parses and refuses everything in it before anything else runs: thousands of requests in one step.
 */
import type { Socket } from "node:net";
import { Duplex } from "node:stream";

/** More than any browser sends to us. */
const HEAD_BYTES_MAX = 8 * 1024;
const HEAD_END = /\n\r?\n/;

export class FirstRequest extends Duplex {
  readonly #socket: Socket;
  /** What has come of it; undefined once it has been passed on. */
  #head: string | undefined = "";

  /** Takes over the connection. */
  constructor(socket: Socket) {
    super();
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("end", () => this.push(null));
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy());
  }

  override _read(): void {
    // What comes is passed on at once: it is little.
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.destroySoon();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  #take(chunk: Buffer): void {
    if (this.#head === undefined) return;
    const head = this.#head + chunk.toString("latin1", 0, HEAD_BYTES_MAX);
    const end = HEAD_END.exec(head);
    if (end !== null) {
      this.#head = undefined;
      this.push(Buffer.from(head.slice(0, end.index + end[0].length), "latin1"));
    } else if (head.length >= HEAD_BYTES_MAX) this.destroy();
    else this.#head = head;
  }
}
