/**
 * Nameserver: one server, which is an address and the namespace it is reached from, with its health, its sockets, and
 * its missing EDNS support.
 */
import { LIMITS } from "../../base/limits.ts";
import type { Server } from "../../base/model/view.ts";
import { Health, type OnHealthChange } from "./health.ts";
import { type SocketPoolParts, SocketPool } from "./socket-pool.ts";

/** Called when a server goes down or comes back up. */
export type OnHealth = (server: Server, ...change: Parameters<OnHealthChange>) => void;

export class Nameserver {
  readonly server: Server;
  readonly health: Health;
  readonly sockets: SocketPool;
  /** Per container: the authoritative servers behind a shared resolver may reject EDNS for one container's names. */
  readonly #withoutEdnsUntilMs = new Map<number, number>();
  #loopsUntilMs = -Infinity;
  /** The time at which TCP last failed, without a reply over TCP since. */
  #tcpFailedMs = -Infinity;

  constructor(server: Server, parts: SocketPoolParts, onHealth: OnHealth) {
    this.server = server;
    this.health = new Health((...change) => onHealth(server, ...change));
    this.sockets = new SocketPool(server.address.includes(":") ? 6 : 4, LIMITS.upstreamSockets, parts, this.health);
  }

  /** The server rejected a query of this container because of EDNS. */
  markWithoutEdns(nowMs: number, client: number): void {
    for (const [each, untilMs] of this.#withoutEdnsUntilMs) if (nowMs >= untilMs) this.#withoutEdnsUntilMs.delete(each);
    this.#withoutEdnsUntilMs.set(client, nowMs + LIMITS.withoutEdnsMs);
  }

  /** It is skipped until then for clients in a forwarding loop. */
  get loopsUntilMs(): number {
    return this.#loopsUntilMs;
  }

  /** As far as this container has observed; or, without one, any container. */
  speaksEdns(nowMs: number, client?: number): boolean {
    if (client !== undefined) return nowMs >= (this.#withoutEdnsUntilMs.get(client) ?? -Infinity);
    return [...this.#withoutEdnsUntilMs.values()].every((untilMs) => nowMs >= untilMs);
  }

  noteTcp(nowMs: number, hasReplied: boolean): void {
    this.#tcpFailedMs = hasReplied ? -Infinity : nowMs;
  }

  /** It did not reply over TCP a moment ago: for explanations, because a container may have caused it. */
  isTcpBlocked(nowMs: number): boolean {
    return nowMs - this.#tcpFailedMs < LIMITS.tcpFailureMs;
  }

  /** A query to it came back to us through a container. */
  markLooping(nowMs: number): void {
    this.#loopsUntilMs = nowMs + LIMITS.loopMs;
  }

  isLooping(nowMs: number): boolean {
    return nowMs < this.#loopsUntilMs;
  }
}
