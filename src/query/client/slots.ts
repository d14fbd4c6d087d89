/**
 * Slots: how many queries one container may have upstream at once. A noisy container fills its own slots and its own
 * queue, never those of others.
 */
import { LIMITS } from "../../base/limits.ts";
import { guard } from "../../base/lib/guard.ts";
import { Pool, type PoolLimits, type Share } from "../../base/lib/share.ts";

interface WaitingQuery {
  readonly begin: () => void;
  readonly refuse: () => void;
  readonly timer: NodeJS.Timeout;
}

/** The number of slots of a container; settings can change it while slots are in use. */
export interface SlotLimit {
  readonly max: number;
  readonly waitMs: number;
}

const DOCKER_SLOT_LIMIT: SlotLimit = { max: LIMITS.forwardSlots, waitMs: LIMITS.forwardWaitMs };

export class Slots {
  readonly #limit: SlotLimit;
  #taken = 0;
  readonly #waiting = new Set<WaitingQuery>();

  constructor(limit: SlotLimit = DOCKER_SLOT_LIMIT) {
    this.#limit = limit;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Queries that have a slot or wait for one. */
  get held(): number {
    return this.#taken + this.#waiting.size;
  }

  /** Takes a slot if one is free; returns whether it did. */
  tryTake(): boolean {
    if (this.#taken >= this.#limit.max) return false;
    this.#taken++;
    return true;
  }

  /** Calls `begin` as soon as a slot is free, which may be at once; calls `refuse` if none is free in time. */
  take(begin: () => void, refuse: () => void): void {
    if (this.tryTake()) {
      begin();
      return;
    }
    if (this.#waiting.size >= LIMITS.forwardWaiting) {
      refuse();
      return;
    }
    const waiting: WaitingQuery = {
      begin,
      refuse,
      timer: setTimeout(() => this.#giveUp(waiting), this.#limit.waitMs),
    };
    this.#waiting.add(waiting);
  }

  /**
   * After this process was blocked, queries that hold slots have run out of time, too. They end in the next turn of the event loop, after
   * their replies have been read, and their slots go to queries that wait; so the refusal waits for that.
   */
  #giveUp(waiting: WaitingQuery): void {
    setImmediate(() =>
      setImmediate(() => {
        if (this.#waiting.delete(waiting)) guard.run("timer", 0, waiting.refuse);
      }),
    );
  }

  /** Releases a slot to the query that has waited longest. */
  release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#taken--;
      return;
    }
    this.#waiting.delete(next);
    clearTimeout(next.timer);
    // Deferred: a query that fails at once releases its slot at once, and a long queue would make a deep stack.
    guard.defer(0, next.begin);
  }
}

/** How much one container uses of resources that all containers share. limits.ts has each limit and its reason. */
export interface Shares {
  /** Bytes of forwarded queries without an answer yet. */
  readonly queryBytes: Share;
  /** Bytes buffered for its TCP connections, in both directions, with clients and with servers. */
  readonly streamBytes: Share;
  /** TCP connections of its clients. */
  readonly clients: Share;
  /** TCP connections to servers. */
  readonly upstreamStreams: Share;
  /** UDP sockets to its own servers. */
  readonly upstreamSockets: Share;
}

export interface SharePools {
  readonly open: () => Shares;
}

/** `descriptors`: how many file descriptors the process may open. */
export function sharePools(descriptors: number): SharePools {
  const ofDescriptors = (limits: PoolLimits, share: number): PoolLimits => ({
    ...limits,
    whole: Math.min(limits.whole, Math.floor(descriptors * share)),
  });
  const pools = {
    queryBytes: new Pool(LIMITS.forwardBytes),
    streamBytes: new Pool(LIMITS.streamBytes),
    clients: new Pool(ofDescriptors(LIMITS.clientStreams, LIMITS.connectionDescriptorShare)),
    upstreamStreams: new Pool(ofDescriptors(LIMITS.upstreamStreams, LIMITS.upstreamDescriptorShare)),
    upstreamSockets: new Pool(ofDescriptors(LIMITS.upstreamSocketsOwn, LIMITS.upstreamDescriptorShare)),
  };
  return {
    open: () => ({
      queryBytes: pools.queryBytes.open(),
      streamBytes: pools.streamBytes.open(),
      clients: pools.clients.open(),
      upstreamStreams: pools.upstreamStreams.open(),
      upstreamSockets: pools.upstreamSockets.open(),
    }),
  };
}
