/**
 * RefusedConnections: TCP connections in namespaces that the keeper refuses. Each is read as far as its client sends whole short
 * queries, and closed for anything else.
 */
import { StreamReader } from "../base/lib/stream-reader.ts";
import { withLength } from "../base/lib/framing.ts";
import { acceptAt } from "../kernel/channel.ts";
import { addressOf, closeQuietly, lastErrno, receive, send } from "../kernel/libc.ts";
import { KEEPER_LIMITS } from "./limits.ts";

interface Connection {
  readonly fd: number;
  readonly reader: StreamReader;
  readonly sinceMs: number;
}

const EAGAIN = 11;

export class RefusedConnections {
  readonly #refusalOf: (message: Uint8Array) => number;
  readonly #memory = Buffer.allocUnsafeSlow(KEEPER_LIMITS.refusedBytes);
  readonly #address = addressOf(this.#memory);
  /** The one that was accepted first comes first. */
  #open: Connection[] = [];

  constructor(refusalOf: (message: Uint8Array) => number) {
    this.#refusalOf = refusalOf;
  }

  get descriptors(): readonly number[] {
    return this.#open.map(({ fd }) => fd);
  }

  /** One for each round; the oldest makes room. */
  accept(listener: number, nowMs: number): void {
    const fd = acceptAt(listener)?.fd;
    if (fd === undefined) return;
    this.#open.push({ fd, reader: new StreamReader(), sinceMs: nowMs });
    if (this.#open.length > KEEPER_LIMITS.refusedConnections) closeQuietly(this.#open.shift()?.fd ?? -1);
  }

  /** `readable` says so of each of `descriptors`. */
  answer(readable: readonly boolean[], nowMs: number): void {
    this.#open = this.#open.filter((connection, index) => {
      const isOld = nowMs - connection.sinceMs > KEEPER_LIMITS.refusedConnectionMs;
      if (!isOld && (readable[index] !== true || this.#goesOn(connection))) return true;
      closeQuietly(connection.fd);
      return false;
    });
  }

  closeAll(): void {
    for (const { fd } of this.#open) closeQuietly(fd);
    this.#open = [];
  }

  #goesOn({ fd, reader }: Connection): boolean {
    const length = receive(fd, this.#address, this.#memory.length);
    if (length <= 0) return length < 0 && lastErrno() === EAGAIN;
    reader.push(this.#memory.subarray(0, length));
    for (let message = reader.next(); message !== undefined; message = reader.next()) {
      const end = this.#refusalOf(message);
      if (end === 0 || send(fd, withLength(message.subarray(0, end))) < 0) return false;
    }
    return reader.bytes <= KEEPER_LIMITS.refusedBytes * 2;
  }
}
