/**
 * Nameserver: one server, which is an address and the namespace it is asked from, with all that is known of it: its
 * health, the sockets to it, and what it cannot do.
 */
import { LIMITS } from "../../base/limits.ts";
import type { Server } from "../../base/model/view.ts";
import { Health } from "./health.ts";
import { type SocketPoolParts, SocketPool } from "./socket-pool.ts";

/** Told when a server goes down, and when it is back. */
export type OnHealth = (server: Server, isUp: boolean, reason: string) => void;

export class Nameserver {
  readonly server: Server;
  readonly health: Health;
  readonly sockets: SocketPool;
  /** By container, for behind a server that all ask the servers of a name may deny EDNS to whoever asks for it. */
  readonly #plainUntilMs = new Map<number, number>();
  #loopsUntilMs = -Infinity;

  constructor(server: Server, parts: SocketPoolParts, onHealth: OnHealth) {
    this.server = server;
    this.health = new Health((isUp, reason) => onHealth(server, isUp, reason));
    this.sockets = new SocketPool(server.address.includes(":") ? 6 : 4, LIMITS.upstreamSockets, parts);
  }

  /** It answered a container's query with EDNS as if it could not read it. */
  markWithoutEdns(nowMs: number, by: number): void {
    for (const [client, untilMs] of this.#plainUntilMs) if (nowMs >= untilMs) this.#plainUntilMs.delete(client);
    this.#plainUntilMs.set(by, nowMs + LIMITS.withoutEdnsMs);
  }

  /** Until then it is left out where it leads back to us. */
  get loopsUntilMs(): number {
    return this.#loopsUntilMs;
  }

  /** As far as this container has found; or, without one, any. */
  speaksEdns(nowMs: number, by?: number): boolean {
    if (by !== undefined) return nowMs >= (this.#plainUntilMs.get(by) ?? -Infinity);
    return [...this.#plainUntilMs.values()].every((untilMs) => nowMs >= untilMs);
  }

  /** A query to it came back to us by way of some container. */
  markLooping(nowMs: number): void {
    this.#loopsUntilMs = nowMs + LIMITS.loopMs;
  }

  isLooping(nowMs: number): boolean {
    return nowMs < this.#loopsUntilMs;
  }
}
