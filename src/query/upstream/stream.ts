/**
 * UpstreamStream: one TCP connection to a server, with many queries in flight (RFC 7766), as it is or by TLS. A reply must match
 * the id and the question of one of them; anything else means a broken server and closes the connection.
 */
import { Socket } from "node:net";

import { setU16 } from "../../base/dns/bytes.ts";
import { HEADER_BYTES, ID_AT, idOf } from "../../base/dns/header.ts";
import { LIMITS } from "../../base/limits.ts";
import { guard } from "../../base/lib/guard.ts";
import { withLength } from "../../base/lib/framing.ts";
import type { RandomIds } from "../../base/lib/random-ids.ts";
import type { Share } from "../../base/lib/share.ts";
import type { StreamTurn } from "../client/stream-turn.ts";
import { StreamReader } from "../../base/lib/stream-reader.ts";
import { TlsConnection, type TlsTarget } from "./tls-connection.ts";
import { type Exchange, isReplyTo } from "./udp-socket.ts";

/** A query on this connection, and the number of connections it was sent on before. */
export interface PendingExchange {
  readonly exchange: Exchange;
  readonly tries: number;
}

/** What it shares with others: `bytes` and `turn` with those of the container. */
export interface StreamParts {
  readonly ids: RandomIds;
  readonly bytes: Share;
  readonly turn: StreamTurn;
  /** It is by TLS; undefined for plain TCP. */
  readonly tls: TlsTarget | undefined;
}

/** What a connection by TLS has, too. */
interface StreamSocket {
  readonly writableLength: number;
  write(bytes: Buffer): unknown;
  pause(): unknown;
  resume(): unknown;
  destroy(): unknown;
}

/** Called once when a connection is closed, with the queries that have no answer. */
type OnClosed = (stream: UpstreamStream, unanswered: readonly PendingExchange[], reason: string) => void;

export class UpstreamStream {
  readonly #socket: StreamSocket;
  readonly #reader = new StreamReader();
  readonly #waiting = new Map<number, PendingExchange>();
  readonly #ids: RandomIds;
  readonly #bytes: Share;
  readonly #turn: StreamTurn;
  readonly #goOn = (): void => this.#guarded(() => this.#work());
  readonly #onClosed: OnClosed;
  /** Queries that wait for a certificate to be verified. */
  #held: Buffer[] | undefined;
  #heldBytes = 0;
  #counted = 0;
  #isClosed = false;
  /** By TLS: since then nothing has come while queries wait. */
  #silentSinceMs = 0;
  readonly #isTls: boolean;
  /** The server has answered on this connection, so a later close is normal and no failure. */
  hasAnswered = false;

  /** Takes ownership of a socket that is connected, or connecting. */
  constructor(fd: number, { ids, bytes, turn, tls }: StreamParts, onClosed: OnClosed) {
    this.#ids = ids;
    this.#bytes = bytes;
    this.#turn = turn;
    this.#onClosed = onClosed;
    this.#isTls = tls !== undefined;
    if (tls === undefined) this.#socket = this.#openPlain(fd);
    else {
      this.#held = [];
      this.#socket = this.#openTls(fd, tls);
    }
  }

  #openPlain(fd: number): Socket {
    const socket = new Socket({ fd, readable: true, writable: true });
    socket.setNoDelay(true);
    // It stays open for later queries, which must not keep the process alive.
    socket.unref();
    socket.setTimeout(LIMITS.upstreamStreamIdleMs, () => this.#guarded(() => this.#end("timed out")));
    socket.on("data", (chunk: Buffer) => this.#guarded(() => this.#onData(chunk)));
    socket.on("error", (error) => this.#guarded(() => this.#end(error.message)));
    for (const end of ["close", "end"]) socket.on(end, () => this.#guarded(() => this.#onEnd()));
    return socket;
  }

  #openTls(fd: number, tls: TlsTarget): TlsConnection {
    return new TlsConnection(fd, tls, this.#turn, {
      onSecure: () => this.#guarded(() => this.#sendHeld()),
      onData: (chunk) => {
        this.#silentSinceMs = performance.now();
        this.#guarded(() => this.#onData(chunk));
      },
      isAwaiting: () => this.#waiting.size > 0,
      onEnd: () => this.#guarded(() => this.#onEnd()),
      onFailed: (reason) => this.#guarded(() => this.#end(reason)),
    });
  }

  #sendHeld(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    this.#heldBytes = 0;
    for (const query of held) this.#socket.write(query);
    this.#count();
  }

  /** An internal error costs the connection. */
  #guarded(work: () => void): void {
    if (!guard.run("upstream", 0, work)) this.#end("internal error");
  }

  get pending(): number {
    return this.#waiting.size;
  }

  /** Its certificate is verified, if it has one. */
  get isSecure(): boolean {
    return this.#held === undefined;
  }

  /** By TLS: how long nothing has come although queries wait. */
  silentMs(nowMs: number): number {
    return this.#waiting.size === 0 ? 0 : nowMs - this.#silentSinceMs;
  }

  send(sent: PendingExchange): void {
    if (this.#isTls && this.#waiting.size === 0) this.#silentSinceMs = performance.now();
    const { message } = sent.exchange;
    let id = this.#ids.next();
    while (this.#waiting.has(id)) id = this.#ids.next();
    setU16(message, ID_AT, id);
    this.#waiting.set(id, sent);
    const query = withLength(message);
    if (this.#held === undefined) this.#socket.write(query);
    else {
      this.#held.push(query);
      this.#heldBytes += query.length;
    }
    this.#count();
  }

  close(reason = "connection no longer needed"): void {
    this.#end(reason);
  }

  #onData(chunk: Buffer): void {
    this.#reader.push(chunk);
    if (this.#count()) this.#work();
  }

  /** Reads as many replies as the container may have in this turn of the event loop. */
  #work(): void {
    while (!this.#isClosed && this.#turn.hasLeft && this.#readOne());
    if (this.#count()) this.#turn.read(this.#socket, this.#goOn);
  }

  /** Returns whether there was a message. */
  #readOne(): boolean {
    const message = this.#reader.next();
    if (message === undefined) return false;
    this.#turn.spend(message.length + LIMITS.streamTurn.each);
    this.#onMessage(message);
    return true;
  }

  /** What has arrived before the end still counts. */
  #onEnd(): void {
    while (!this.#isClosed && this.#readOne());
    this.#end(CLOSED);
  }

  #onMessage(message: Buffer): void {
    const id = message.length < HEADER_BYTES ? undefined : idOf(message);
    const sent = id === undefined ? undefined : this.#waiting.get(id);
    if (id === undefined || sent === undefined) return this.#end("the reply has an unknown id");
    this.#waiting.delete(id);
    if (!isReplyTo(message, sent.exchange)) {
      guard.run("upstream", sent.exchange.clientNumber, () =>
        sent.exchange.onUnreachable("the reply is to another question"),
      );
      return this.#end("the reply is to another question");
    }
    this.hasAnswered = true;
    guard.run("upstream", sent.exchange.clientNumber, () => sent.exchange.onReply(message));
  }

  /** Charges its buffers to the container; returns whether that is still within the container's share. */
  #count(): boolean {
    if (this.#isClosed) return false;
    const held = this.#reader.bytes + this.#socket.writableLength + this.#heldBytes;
    const more = held - this.#counted;
    if (more > 0 && !this.#bytes.take(more)) {
      this.#end("too many bytes in the buffers of the container's connections");
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

const CLOSED = "connection closed without a reply";
