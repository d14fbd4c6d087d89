/**
 * UpstreamStream: one TCP connection to a server, on which many queries are under way at once (RFC 7766). A reply counts
 * that has the id and the question of one of them; anything else on a connection is a broken server, and ends it.
 */
import { Socket } from "node:net";

import { setU16 } from "../../base/dns/bytes.ts";
import { HEADER_BYTES, ID_AT, idOf } from "../../base/dns/header.ts";
import { LIMITS } from "../../base/limits.ts";
import { guard } from "../../base/lib/guard.ts";
import { withLength } from "../../base/lib/framing.ts";
import type { RandomIds } from "../../base/lib/random-ids.ts";
import type { Share } from "../../base/lib/share.ts";
import { StreamReader } from "../../base/lib/stream-reader.ts";
import { type Exchange, isReplyTo } from "./udp-socket.ts";

/** A query on this connection, and on how many others it has been before. */
export interface PendingExchange {
  readonly exchange: Exchange;
  readonly tries: number;
}

/** Told once of a connection that is over, with what was not answered on it. */
type OnClosed = (stream: UpstreamStream, unanswered: readonly PendingExchange[], reason: string) => void;

export class UpstreamStream {
  readonly #socket: Socket;
  readonly #reader = new StreamReader();
  readonly #waiting = new Map<number, PendingExchange>();
  readonly #ids: RandomIds;
  readonly #bytes: Share;
  readonly #onClosed: OnClosed;
  #counted = 0;
  #isClosed = false;
  /** The server has answered here, so that a later end is its right and no failure. */
  hasAnswered = false;

  /** Takes over a socket that is connected, or connecting. */
  constructor(fd: number, ids: RandomIds, bytes: Share, onClosed: OnClosed) {
    this.#ids = ids;
    this.#bytes = bytes;
    this.#onClosed = onClosed;
    this.#socket = new Socket({ fd, readable: true, writable: true });
    this.#socket.setNoDelay(true);
    // It is kept open for queries to come; that is no reason for the process to live.
    this.#socket.unref();
    this.#socket.setTimeout(LIMITS.upstreamStreamIdleMs, () => this.#enter(() => this.#end("no answer in time")));
    this.#socket.on("data", (chunk: Buffer) => this.#enter(() => this.#onData(chunk)));
    this.#socket.on("error", (error) => this.#enter(() => this.#end(error.message)));
    for (const end of ["close", "end"]) this.#socket.on(end, () => this.#enter(() => this.#end(CLOSED)));
  }

  /** A defect costs the connection. */
  #enter(work: () => void): void {
    if (!guard.run("upstream", 0, work)) this.#socket.destroy();
  }

  get pending(): number {
    return this.#waiting.size;
  }

  ask(sent: PendingExchange): void {
    const message = Buffer.from(sent.exchange.message);
    let id = this.#ids.next();
    while (this.#waiting.has(id)) id = this.#ids.next();
    setU16(message, ID_AT, id);
    this.#waiting.set(id, sent);
    this.#socket.write(withLength(message));
    this.#count();
  }

  close(): void {
    this.#end("the connection is not needed any more");
  }

  #onData(chunk: Buffer): void {
    this.#reader.push(chunk);
    if (!this.#count()) return;
    for (let message = this.#reader.next(); message !== undefined; message = this.#reader.next()) {
      this.#onMessage(message);
      if (this.#isClosed) return;
    }
    this.#count();
  }

  #onMessage(message: Buffer): void {
    const id = message.length < HEADER_BYTES ? undefined : idOf(message);
    const sent = id === undefined ? undefined : this.#waiting.get(id);
    if (id === undefined || sent === undefined) return this.#end("it answered what was not asked");
    this.#waiting.delete(id);
    if (!isReplyTo(message, sent.exchange)) {
      guard.run("upstream", sent.exchange.clientNumber, () =>
        sent.exchange.onUnreachable("it answered another question"),
      );
      return this.#end("it answered another question");
    }
    this.hasAnswered = true;
    guard.run("upstream", sent.exchange.clientNumber, () => sent.exchange.onReply(message));
  }

  /** What it holds in memory is its container's; whether that is still within its share. */
  #count(): boolean {
    if (this.#isClosed) return false;
    const held = this.#reader.bytes + this.#socket.writableLength;
    const more = held - this.#counted;
    if (more > 0 && !this.#bytes.take(more)) {
      this.#end("the container's connections hold too many bytes");
      return false;
    }
    if (more < 0) this.#bytes.give(-more);
    this.#counted = held;
    return true;
  }

  #end(reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#bytes.give(this.#counted);
    this.#socket.destroy();
    const unanswered = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#onClosed(this, unanswered, reason);
  }
}

const CLOSED = "connection closed without an answer";
