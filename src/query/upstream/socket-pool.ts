/**
 * SocketPool: the UDP sockets to one server. Each query uses one of them at random. A socket is replaced after some
 * time or queries, so that the kernel picks a new random port, and all are closed when idle.
 */
import { LIMITS } from "../../base/limits.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import type { Share } from "../../base/lib/share.ts";
import type { SpareDescriptors } from "../../kernel/descriptors.ts";
import type { Health } from "./health.ts";
import { UpstreamSocket, type SocketErrors, type SocketParts } from "./udp-socket.ts";

/** Shared by all pools: the receive buffer and the socket limit. */
export interface SocketPoolParts extends SocketParts {
  readonly socketsMax: number;
  /** The pools that have sockets. */
  readonly pools: Set<SocketPool>;
  readonly sockets: { open: number };
  /** For a server that has no socket when the process has no descriptor left. */
  readonly spare?: SpareDescriptors;
  /** The container's share, for its own server. */
  readonly share?: Share;
}

const SWEEP_MS = 1_000;
const IDLE_MS = 3_000;

export class SocketPool implements SocketErrors {
  readonly #parts: SocketPoolParts;
  readonly #family: 4 | 6;
  readonly #health: Pick<Health, "suspicion" | "recordSocketError">;
  readonly #slots: (UpstreamSocket | undefined)[];
  /** Replaced, but queries still wait on them. */
  readonly #draining = new Set<UpstreamSocket>();

  constructor(
    family: 4 | 6,
    slots: number,
    parts: SocketPoolParts,
    health: Pick<Health, "suspicion" | "recordSocketError">,
  ) {
    this.#parts = parts;
    this.#health = health;
    this.#family = family;
    this.#slots = Array.from({ length: slots }, () => undefined);
  }

  /** A socket for one query; `dial` opens a connected one, and may throw. */
  draw(nowMs: number, dial: () => number): UpstreamSocket {
    const { ids, now, pools, sockets, socketsMax, share } = this.#parts;
    const slot = ids.next() % this.#slots.length;
    const drawn = this.#slots[slot];
    if (drawn !== undefined && !drawn.isSpent(nowMs)) return drawn;
    // Without waiting queries the drawn socket is useless, and would only count against the container's share.
    const isUnused = drawn?.isIdle === true;
    if (isUnused) this.#close(drawn);
    this.#slots[slot] = undefined;
    if (sockets.open >= socketsMax || share?.has(1) === false) {
      const shared = this.#slots.find((socket) => socket !== undefined) ?? (isUnused ? undefined : drawn);
      if (shared === drawn) this.#slots[slot] = drawn;
      else if (drawn !== undefined && !isUnused) this.#draining.add(drawn);
      if (shared !== undefined) return shared;
    } else if (drawn !== undefined && !isUnused) this.#draining.add(drawn);
    if (share?.take(1) === false) {
      throw new Fault("TOO_MANY_SOCKETS", "too many UDP sockets to the container's own servers");
    }
    const socket = this.#open(dial, share, isUnused ? undefined : drawn);
    if (socket === drawn || this.#slots.includes(socket)) return socket;
    sockets.open++;
    this.#slots[slot] = socket;
    if (pools.size === 0) startSweeping(pools, now);
    pools.add(this);
    return socket;
  }

  /** Without a descriptor a query shares a socket to this server, `before` if there is no other; one that has none gets one kept back. */
  #open(dial: () => number, share: Share | undefined, before: UpstreamSocket | undefined): UpstreamSocket {
    try {
      return new UpstreamSocket(this.#dial(dial, before), this.#family, this.#parts, this);
    } catch (error) {
      share?.give(1);
      const shared = codeOf(error) === "EMFILE" ? this.#sharedWith(before) : undefined;
      if (shared === undefined) throw error;
      return shared;
    }
  }

  #dial(dial: () => number, before: UpstreamSocket | undefined): number {
    try {
      return dial();
    } catch (error) {
      if (codeOf(error) !== "EMFILE" || this.#sharedWith(before) !== undefined) throw error;
      if (this.#parts.spare?.giveUp() !== true) throw error;
      return dial();
    }
  }

  #sharedWith(before: UpstreamSocket | undefined): UpstreamSocket | undefined {
    return this.#slots.find((socket) => socket !== undefined) ?? before;
  }

  /** Closes sockets that are no longer needed; returns whether any is left. */
  sweep(nowMs: number): boolean {
    for (const [slot, socket] of this.#slots.entries()) {
      if (socket === undefined) continue;
      if (socket.isSpent(nowMs) || nowMs - socket.lastSentMs >= IDLE_MS) {
        this.#slots[slot] = undefined;
        this.#draining.add(socket);
      }
    }
    for (const socket of this.#draining) {
      // A late reply shows that a slow server is alive; after the time budget no query waits for one.
      if (!socket.isIdle && nowMs - socket.lastSentMs < LIMITS.upstreamSocketMs) continue;
      this.#close(socket);
      this.#draining.delete(socket);
    }
    return this.#draining.size > 0 || this.#slots.some((socket) => socket !== undefined);
  }

  get suspicion(): number {
    return this.#health.suspicion;
  }

  /** Errors confirm each other only on new sockets. */
  recordSocketError(suspicion: number, reason: string): void {
    if (this.#health.recordSocketError(this.#parts.now(), suspicion, reason)) this.retire();
  }

  /** Sends nothing more on these sockets; outstanding queries may still be answered. */
  retire(): void {
    for (const socket of this.#slots) if (socket !== undefined) this.#draining.add(socket);
    this.#slots.fill(undefined);
  }

  close(): void {
    for (const socket of this.#slots) if (socket !== undefined) this.#close(socket);
    for (const socket of this.#draining) this.#close(socket);
    this.#slots.fill(undefined);
    this.#draining.clear();
    this.#parts.pools.delete(this);
  }

  #close(socket: UpstreamSocket): void {
    socket.close();
    this.#parts.sockets.open--;
    this.#parts.spare?.keep();
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
