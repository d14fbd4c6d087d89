/**
 * StreamPool: the TCP connections of one container to one server. They are used again, because a connection a query would
 * soon leave no ports; and they are nobody else's, because many servers answer what comes on a connection one after the
 * other, and a slow name of one container would be another one's delay.
 */
import { LIMITS } from "../../base/limits.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import type { RandomIds } from "../../base/lib/random-ids.ts";
import type { RateLimit } from "../../base/lib/rate-limit.ts";
import type { Shares } from "../client/shares.ts";
import { type PendingExchange, UpstreamStream } from "./stream.ts";
import type { Exchange } from "./udp-socket.ts";

export interface StreamPoolParts {
  readonly ids: RandomIds;
  readonly shares: Pick<Shares, "upstreamStreams" | "streamBytes">;
  /** How many new connections there may be: of the container, and of all containers where the server is the host's. */
  readonly connects: RateLimit;
  readonly connectsOfHost: RateLimit | undefined;
  /** Opens a socket that is connecting to the server; may throw. */
  readonly dial: () => number;
}

/** A connection for one question alone. */
interface DedicatedConnection {
  readonly fd: number;
  /** To be called once, when it is closed. */
  readonly onClosed: () => void;
}

export class StreamPool {
  readonly #parts: StreamPoolParts;
  readonly #streams = new Set<UpstreamStream>();
  #isClosed = false;

  constructor(parts: StreamPoolParts) {
    this.#parts = parts;
  }

  /** Throws where no connection can be had. */
  ask(exchange: Exchange): void {
    this.#choose().ask({ exchange, tries: 0 });
  }

  /** Opens a connection that is not shared, as one more of the container's. Throws where none can be had. */
  openDedicated(): DedicatedConnection {
    if (!this.#mayOpen()) throw tooMany();
    const { upstreamStreams } = this.#parts.shares;
    return { fd: this.#dial(), onClosed: () => upstreamStreams.give(1) };
  }

  close(): void {
    this.#isClosed = true;
    for (const stream of this.#streams) stream.close();
  }

  /** One on which nothing is under way, or else a new one, or else the one on which least is. */
  #choose(): UpstreamStream {
    let idlest: UpstreamStream | undefined;
    for (const stream of this.#streams) {
      if (idlest === undefined || stream.pending < idlest.pending) idlest = stream;
    }
    if (idlest?.pending === 0) return idlest;
    const mayOpen = this.#streams.size < LIMITS.upstreamStreamsPerServer && this.#mayOpen();
    if (mayOpen) return this.#open();
    if (idlest !== undefined && idlest.pending < LIMITS.upstreamPipelined) return idlest;
    throw tooMany();
  }

  /** The first connection to a server is not refused for how many others open. */
  #mayOpen(): boolean {
    const { shares, connects, connectsOfHost } = this.#parts;
    const isOverOfHost = this.#streams.size > 0 && connectsOfHost?.has() === false;
    if (this.#isClosed || isOverOfHost || !connects.has() || !shares.upstreamStreams.take(1)) return false;
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
    const { ids, shares } = this.#parts;
    const stream = new UpstreamStream(this.#dial(), ids, shares.streamBytes, (...end) => this.#onClosed(...end));
    this.#streams.add(stream);
    return stream;
  }

  /**
   * A server may end a connection whenever it likes, also behind each reply; what it had not answered is asked on another
   * one, as long as somebody waits for it. Nobody is called back before the call that ended it has returned.
   */
  #onClosed(stream: UpstreamStream, unanswered: readonly PendingExchange[], reason: string): void {
    this.#streams.delete(stream);
    this.#parts.shares.upstreamStreams.give(1);
    for (const { exchange, tries } of unanswered) {
      if (exchange.isWanted === false) continue;
      const mayTry = stream.hasAnswered && tries < LIMITS.upstreamStreamTries && !this.#isClosed;
      guard.defer(exchange.clientNumber, () => {
        if (mayTry) this.#askAgain(exchange, tries + 1);
        else exchange.onUnreachable(reason);
      });
    }
  }

  #askAgain(exchange: Exchange, tries: number): void {
    try {
      this.#choose().ask({ exchange, tries });
    } catch (error) {
      exchange.onUnreachable(reasonOf(error));
    }
  }
}

function tooMany(): Fault {
  return new Fault("TOO_MANY_STREAMS", "too many TCP connections or queries on them are under way");
}
