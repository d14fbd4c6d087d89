/**
 * SocketPool: the UDP sockets to one server. Each query draws one of them at random; those that have had their time are
 * exchanged for new ones, which the kernel puts on other random ports, and where nothing is asked any more all are closed.
 */
import { LIMITS } from "../../base/limits.ts";
import { Fault } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import type { Share } from "../../base/lib/share.ts";
import { UpstreamSocket, type SocketParts } from "./udp-socket.ts";

/** What all pools share: the memory they receive into, and how many sockets there are and may be. */
export interface SocketPoolParts extends SocketParts {
  readonly socketsMax: number;
  /** Those that have sockets. */
  readonly pools: Set<SocketPool>;
  readonly sockets: { open: number };
  /** Where they are one container's: what it may have of them. */
  readonly share?: Share;
}

const SWEEP_MS = 1_000;
const IDLE_MS = 3_000;

export class SocketPool {
  readonly #parts: SocketPoolParts;
  readonly #family: 4 | 6;
  readonly #places: (UpstreamSocket | undefined)[];
  /** Spent, but somebody still waits there. */
  readonly #leaving = new Set<UpstreamSocket>();

  constructor(family: 4 | 6, places: number, parts: SocketPoolParts) {
    this.#parts = parts;
    this.#family = family;
    this.#places = Array.from({ length: places }, () => undefined);
  }

  /** A socket for one query; `dial` opens a connected one, and may throw. */
  draw(dial: () => number): UpstreamSocket {
    const { ids, now, pools, sockets, socketsMax, share } = this.#parts;
    const place = ids.next() % this.#places.length;
    const drawn = this.#places[place];
    if (drawn !== undefined && !drawn.isSpent(now())) return drawn;
    // Where nobody waits it is of no use any more, and would only hold its place in the container's share.
    const isLeft = drawn?.isIdle === true;
    if (isLeft) this.#close(drawn);
    this.#places[place] = undefined;
    if (sockets.open >= socketsMax || share?.has(1) === false) {
      const shared = this.#places.find((socket) => socket !== undefined) ?? (isLeft ? undefined : drawn);
      if (shared === drawn) this.#places[place] = drawn;
      else if (drawn !== undefined && !isLeft) this.#leaving.add(drawn);
      if (shared !== undefined) return shared;
    } else if (drawn !== undefined && !isLeft) this.#leaving.add(drawn);
    if (share?.take(1) === false) {
      throw new Fault("TOO_MANY_SOCKETS", "the container has too many sockets to servers of its own");
    }
    const socket = this.#open(dial, share);
    sockets.open++;
    this.#places[place] = socket;
    if (pools.size === 0) startSweeping(pools, now);
    pools.add(this);
    return socket;
  }

  #open(dial: () => number, share: Share | undefined): UpstreamSocket {
    try {
      return new UpstreamSocket(dial(), this.#family, this.#parts);
    } catch (error) {
      share?.give(1);
      throw error;
    }
  }

  /** Closes what is no longer needed; whether anything is left. */
  sweep(nowMs: number): boolean {
    for (const [place, socket] of this.#places.entries()) {
      if (socket === undefined) continue;
      if (socket.isSpent(nowMs) || nowMs - socket.lastAskedMs >= IDLE_MS) {
        this.#places[place] = undefined;
        this.#leaving.add(socket);
      }
    }
    for (const socket of this.#leaving) {
      // A late reply tells that a slow server lives; past the budget nobody waits for one.
      if (!socket.isIdle && nowMs - socket.lastAskedMs < LIMITS.upstreamSocketMs) continue;
      this.#close(socket);
      this.#leaving.delete(socket);
    }
    return this.#leaving.size > 0 || this.#places.some((socket) => socket !== undefined);
  }

  /** Asks nothing more on these sockets; what was asked may still be answered. */
  retire(): void {
    for (const socket of this.#places) if (socket !== undefined) this.#leaving.add(socket);
    this.#places.fill(undefined);
  }

  close(): void {
    for (const socket of this.#places) if (socket !== undefined) this.#close(socket);
    for (const socket of this.#leaving) this.#close(socket);
    this.#places.fill(undefined);
    this.#leaving.clear();
    this.#parts.pools.delete(this);
  }

  #close(socket: UpstreamSocket): void {
    socket.close();
    this.#parts.sockets.open--;
    this.#parts.share?.give(1);
  }
}

/** One timer for all pools, and none while there is no socket. */
function startSweeping(pools: Set<SocketPool>, now: () => number): void {
  const timer = setInterval(() => {
    for (const pool of pools) {
      guard.run("timer", 0, () => {
        if (!pool.sweep(now())) pools.delete(pool);
      });
    }
    if (pools.size === 0) clearInterval(timer);
  }, SWEEP_MS);
  timer.unref();
}
