/**
 * StreamPool: the TCP connections of one container to one server. Connections are reused, because one per query would
 * soon exhaust the ports. They are not shared between containers, because many servers answer queries on a connection
 * in order, so that one container's slow name would delay another container.
 *
 * By TLS a connection costs a handshake, so there is a second one only when the first is busy, or silent.
 */
import { LIMITS } from "../../base/limits.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import type { RandomIds } from "../../base/lib/random-ids.ts";
import type { RateLimit } from "../../base/lib/rate-limit.ts";
import type { Shares } from "../client/shares.ts";
import type { StreamTurn } from "../client/stream-turn.ts";
import { type PendingExchange, UpstreamStream } from "./stream.ts";
import type { TlsTarget } from "./tls-connection.ts";
import type { Exchange } from "./udp-socket.ts";

export interface StreamPoolParts {
  readonly ids: RandomIds;
  readonly shares: Pick<Shares, "upstreamStreams" | "streamBytes">;
  readonly turn: StreamTurn;
  /** Rate limits for new connections: the container's, and the one over all containers if the server is the host's. */
  readonly connects: RateLimit;
  readonly connectsOfHost: RateLimit | undefined;
  /** Opens a socket that is connecting to the server; may throw. */
  readonly dial: () => number;
  /** For a server that is asked by TLS. */
  readonly tls?: (() => TlsTarget) | undefined;
}

/** A connection for one query only. */
interface DedicatedConnection {
  readonly fd: number;
  /** Where it is by TLS, the server and the container's turn. */
  readonly tls: { readonly target: TlsTarget; readonly turn: StreamTurn } | undefined;
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
    const { shares, tls, turn } = this.#parts;
    const fd = this.#dial();
    return { fd, tls: tls && { target: tls(), turn }, onClosed: () => shares.upstreamStreams.give(1) };
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

  /** One that is neither busy nor silent, else a new one, else the one with the fewest queries in flight. */
  #chooseTls(): UpstreamStream {
    const { busy, silentMs, stuckMs } = LIMITS.tls;
    const now = performance.now();
    let [leastBusy, best]: (UpstreamStream | undefined)[] = [];
    for (const stream of [...this.#streams]) {
      const silentForMs = stream.silentMs(now);
      // Whoever has asked there does not wait any more, and the way to the server may be another one.
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
    // Of connections that are not verified yet there is one: the others would fail as it does.
    if (!isOpening && this.#streams.size < LIMITS.upstreamStreamsPerServer && this.#reserve()) return this.#open();
    if (leastBusy !== undefined && leastBusy.pending < LIMITS.upstreamPipelined) return leastBusy;
    throw tooMany();
  }

  /**
   * Takes a place for one more connection. The rate limit over all containers does not apply to a container's first
   * connection to a server.
   */
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
    const { ids, shares, turn, tls } = this.#parts;
    const parts = { ids, bytes: shares.streamBytes, turn, tls: tls?.() };
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
