/**
 * StreamPool: the TCP connections of one container to one server. Connections are reused, because one per query would
 * soon exhaust the ports. They are not shared between containers, because many servers answer queries on a connection
 * in order, so that one container's slow name would delay another container.
 *
 * Over TLS a connection costs a handshake, so there is a second one only when the first is busy, or silent.
 */
import { LIMITS } from "../../base/limits.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import type { RandomIds } from "../../base/lib/random-ids.ts";
import type { RateLimit } from "../../base/lib/rate-limit.ts";
import type { Shares } from "../client/slots.ts";
import type { StreamBudget } from "../client/stream-budget.ts";
import { type TlsTarget, TlsConnection } from "./tls-connection.ts";
import { type Exchange, isReplyTo } from "./udp-socket.ts";
import { Socket } from "node:net";
import { setU16 } from "../../base/dns/bytes.ts";
import { HEADER_BYTES, ID_AT, idOf } from "../../base/dns/header.ts";
import type { Share } from "../../base/lib/share.ts";
import { StreamReader, withLength } from "../../base/lib/stream-reader.ts";

interface StreamPoolParts {
  readonly ids: RandomIds;
  readonly shares: Pick<Shares, "upstreamStreams" | "streamBytes">;
  readonly budget: StreamBudget;
  /** Rate limits for new connections: the container's, and the one over all containers if the server is the host's. */
  readonly connects: RateLimit;
  readonly connectsOfHost: RateLimit | undefined;
  /** Opens a socket that is connecting to the server; may throw. */
  readonly dial: () => number;
  /** For a server that is queried over TLS. */
  readonly tls?: (() => TlsTarget) | undefined;
}

/** A connection for one query only. */
interface DedicatedConnection {
  readonly fd: number;
  /** The server and the container's budget, if the connection uses TLS. */
  readonly tls: { readonly target: TlsTarget; readonly budget: StreamBudget } | undefined;
  /** Must be called once, when the connection is closed. */
  readonly onClosed: () => void;
}

export class StreamPool {
  readonly #parts: StreamPoolParts;
  readonly #streams = new Set<UpstreamStream>();
  #isClosed = false;
  #blockedUntilMs = -Infinity;

  constructor(parts: StreamPoolParts) {
    this.#parts = parts;
  }

  /** Throws if no connection is available. */
  send(exchange: Exchange): void {
    this.#choose().send({ exchange, tries: 0 });
  }

  /** Opens a connection that is not shared; it counts against the container's limits. Throws if none is available. */
  openDedicated(): DedicatedConnection {
    if (!this.#reserve()) throw tooMany();
    const { shares, tls, budget } = this.#parts;
    const fd = this.#dial();
    return { fd, tls: tls && { target: tls(), budget }, onClosed: () => shares.upstreamStreams.give(1) };
  }

  /** The server has replied over TCP, or has not in its time. */
  note(nowMs: number, hasReplied: boolean): void {
    this.#blockedUntilMs = hasReplied ? -Infinity : nowMs + LIMITS.tcpBlockedMs;
  }

  /** A firewall may drop what is sent to it over TCP. */
  isBlocked(nowMs: number): boolean {
    return nowMs < this.#blockedUntilMs;
  }

  close(): void {
    this.#isClosed = true;
    for (const stream of this.#streams) stream.close();
  }

  /** An idle connection, else a new one, else the one with the fewest queries in flight. */
  #choose(): UpstreamStream {
    if (this.#parts.tls !== undefined) return this.#chooseTls();
    let leastBusy: UpstreamStream | undefined;
    for (const stream of this.#streams) {
      if (leastBusy === undefined || stream.pending < leastBusy.pending) leastBusy = stream;
    }
    if (leastBusy?.pending === 0) return leastBusy;
    const hasReserved = this.#streams.size < LIMITS.upstreamStreamsPerServer && this.#reserve();
    if (hasReserved) return this.#open();
    if (leastBusy !== undefined && leastBusy.pending < LIMITS.upstreamPipelined) return leastBusy;
    throw tooMany();
  }

  /** A connection that is neither busy nor silent, else a new one, else the one with the fewest queries in flight. */
  #chooseTls(): UpstreamStream {
    const { busy, silentMs, stuckMs } = LIMITS.tls;
    const now = performance.now();
    let [leastBusy, best]: (UpstreamStream | undefined)[] = [];
    for (const stream of [...this.#streams]) {
      const silentForMs = stream.silentMs(now);
      // No client waits for its queries any more, and the path to the server may have changed.
      if (silentForMs >= stuckMs) {
        stream.close("the server does not answer on this connection");
        continue;
      }
      if (leastBusy === undefined || stream.pending < leastBusy.pending) leastBusy = stream;
      const isGood = stream.pending < busy && (silentForMs < silentMs || !stream.isSecure);
      if (isGood && (best === undefined || stream.pending < best.pending)) best = stream;
    }
    if (best !== undefined) return best;
    const isOpening = leastBusy?.isSecure === false;
    // Only one connection at a time is not verified yet: others would fail for the same reason.
    if (!isOpening && this.#streams.size < LIMITS.upstreamStreamsPerServer && this.#reserve()) return this.#open();
    if (leastBusy !== undefined && leastBusy.pending < LIMITS.upstreamPipelined) return leastBusy;
    throw tooMany();
  }

  /** Reserves one more connection. The rate limit over all containers does not apply to a container's first connection to a server. */
  #reserve(): boolean {
    const { shares, connects, connectsOfHost } = this.#parts;
    const isHostLimited = this.#streams.size > 0 && connectsOfHost?.has() === false;
    if (this.#isClosed || isHostLimited || !connects.has() || !shares.upstreamStreams.take(1)) return false;
    connectsOfHost?.take();
    return connects.take();
  }

  #dial(): number {
    const { shares, dial } = this.#parts;
    try {
      return dial();
    } catch (error) {
      shares.upstreamStreams.give(1);
      throw error;
    }
  }

  #open(): UpstreamStream {
    const { ids, shares, budget, tls } = this.#parts;
    const parts = { ids, bytes: shares.streamBytes, budget, tls: tls?.() };
    const stream = new UpstreamStream(this.#dial(), parts, (...end) => this.#onClosed(...end));
    this.#streams.add(stream);
    return stream;
  }

  /**
   * A server may close a connection at any time, even after every reply. Queries without an answer move to another
   * connection if a client still waits. Callbacks run only after the call that closed the connection has returned.
   */
  #onClosed(stream: UpstreamStream, unanswered: readonly PendingExchange[], reason: string): void {
    this.#streams.delete(stream);
    this.#parts.shares.upstreamStreams.give(1);
    for (const { exchange, tries } of unanswered) {
      if (exchange.isWanted === false) continue;
      const mayRetry = stream.hasAnswered && tries < LIMITS.upstreamStreamTries && !this.#isClosed;
      guard.defer(exchange.clientNumber, () => {
        if (mayRetry) this.#retry(exchange, tries + 1);
        else exchange.onUnreachable(reason);
      });
    }
  }

  #retry(exchange: Exchange, tries: number): void {
    try {
      this.#choose().send({ exchange, tries });
    } catch (error) {
      exchange.onUnreachable(reasonOf(error));
    }
  }
}

function tooMany(): Fault {
  return new Fault("TOO_MANY_STREAMS", "too many TCP connections, or queries on them");
}

/** A query on this connection, and the number of connections it was sent on before. */
interface PendingExchange {
  readonly exchange: Exchange;
  readonly tries: number;
}

/** What the connection shares with others of the container. */
interface StreamParts {
  readonly ids: RandomIds;
  readonly bytes: Share;
  readonly budget: StreamBudget;
  /** Set for TLS; undefined for plain TCP. */
  readonly tls: TlsTarget | undefined;
}

/** What a plain socket and a TLS connection have in common. */
interface StreamSocket {
  readonly writableLength: number;
  write(bytes: Buffer): unknown;
  pause(): unknown;
  resume(): unknown;
  destroy(): unknown;
}

/** Called once when a connection is closed, with the queries that have no answer. */
type OnClosed = (stream: UpstreamStream, unanswered: readonly PendingExchange[], reason: string) => void;

/**
 * One TCP connection to a server, with many queries in flight (RFC 7766), plainly or over TLS. A reply must match
 * the id and the question of one of them; anything else means a broken server and closes the connection.
 */
class UpstreamStream {
  readonly #socket: StreamSocket;
  readonly #reader = new StreamReader();
  readonly #waiting = new Map<number, PendingExchange>();
  readonly #ids: RandomIds;
  readonly #bytes: Share;
  readonly #budget: StreamBudget;
  readonly #goOn = (): void => this.#guarded(() => this.#work());
  readonly #onClosed: OnClosed;
  /** Queries that wait for a certificate to be verified. */
  #held: Buffer[] | undefined;
  #heldBytes = 0;
  #counted = 0;
  #isClosed = false;
  /** Over TLS: since when nothing has arrived while queries wait. */
  #silentSinceMs = 0;
  readonly #isTls: boolean;
  /** The server has answered on this connection, so a later close is normal and no failure. */
  hasAnswered = false;

  /** Takes ownership of a socket that is connected, or connecting. */
  constructor(fd: number, { ids, bytes, budget, tls }: StreamParts, onClosed: OnClosed) {
    this.#ids = ids;
    this.#bytes = bytes;
    this.#budget = budget;
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
    return new TlsConnection(fd, tls, this.#budget, {
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

  /** Whether its certificate is verified, if it uses TLS. */
  get isSecure(): boolean {
    return this.#held === undefined;
  }

  /** Over TLS: for how long nothing has arrived while queries wait. */
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
    while (!this.#isClosed && this.#budget.hasLeft && this.#readOne());
    if (this.#count()) this.#budget.read(this.#socket, this.#goOn);
  }

  /** Returns whether there was a message. */
  #readOne(): boolean {
    const message = this.#reader.next();
    if (message === undefined) return false;
    this.#budget.spend(message.length + LIMITS.streamBudget.each);
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
