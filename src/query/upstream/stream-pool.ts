/**
 * StreamPool: the TCP connections of one container to one server. They are used again, because a connection a query would
 * soon leave no ports; and they are nobody else's, because many servers answer what comes on a connection one after the
 * other, and a slow name of one container would be another one's delay.
 */
import { LIMITS } from "../../config/limits.ts";
import { Fault, reasonOf } from "../../lib/fault.ts";
import { guard } from "../../lib/guard.ts";
import type { RandomIds } from "../../lib/random-ids.ts";
import type { RateLimit } from "../../lib/rate-limit.ts";
import type { Shares } from "../shares.ts";
import { type Sent, UpstreamStream } from "./stream.ts";
import type { Exchange } from "./udp-socket.ts";

export interface StreamPoolParts {
  readonly ids: RandomIds;
  readonly shares: Pick<Shares, "upstreamStreams" | "streamBytes">;
  /** Each has a say in whether another connection may be opened now. */
  readonly connects: readonly RateLimit[];
  /** Opens a socket that is connecting to the server; may throw. */
  readonly dial: () => number;
}

export class StreamPool {
  readonly #parts: StreamPoolParts;
  readonly #streams = new Set<UpstreamStream>();

  constructor(parts: StreamPoolParts) {
    this.#parts = parts;
  }

  /** Throws where no connection can be had. */
  ask(exchange: Exchange): void {
    this.#choose().ask({ exchange, isAgain: false });
  }

  close(): void {
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
    throw new Fault("TOO_MANY_STREAMS", "too many TCP connections or queries on them are under way");
  }

  #mayOpen(): boolean {
    const { shares, connects } = this.#parts;
    if (!shares.upstreamStreams.take(1)) return false;
    if (connects.every((limit) => limit.take())) return true;
    shares.upstreamStreams.give(1);
    return false;
  }

  #open(): UpstreamStream {
    const { ids, shares, dial } = this.#parts;
    try {
      const stream = new UpstreamStream(dial(), ids, shares.streamBytes, (...end) => this.#onClosed(...end));
      this.#streams.add(stream);
      return stream;
    } catch (error) {
      shares.upstreamStreams.give(1);
      throw error;
    }
  }

  /** A server may end a connection whenever it likes; what it had not answered is asked on another one, once. */
  #onClosed(stream: UpstreamStream, unanswered: readonly Sent[], reason: string): void {
    this.#streams.delete(stream);
    this.#parts.shares.upstreamStreams.give(1);
    for (const { exchange, isAgain } of unanswered) {
      guard.run("upstream", exchange.by, () => {
        if (isAgain || !stream.hasAnswered) exchange.onUnreachable(reason);
        else this.#askAgain(exchange);
      });
    }
  }

  #askAgain(exchange: Exchange): void {
    try {
      this.#choose().ask({ exchange, isAgain: true });
    } catch (error) {
      exchange.onUnreachable(reasonOf(error));
    }
  }
}
