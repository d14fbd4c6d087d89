/**
 * UpstreamQueryPlan: the input of an upstream query, its environment, and its result.
 */
import type { Share } from "../../base/lib/share.ts";
import type { ForwardPolicy } from "../../base/model/upstream-policy.ts";
import type { Server } from "../../base/model/view.ts";
import type { Dial } from "../client/client.ts";
import type { Meter } from "../record/meter.ts";
import type { QueryTap } from "../tap.ts";
import type { Nameserver } from "../upstream/nameserver.ts";
import type { ServerQueue } from "../upstream/server-queue.ts";
import type { StreamPool } from "../upstream/stream-pool.ts";
import { guard } from "../../base/lib/guard.ts";
import { IndexedSet } from "../../base/lib/indexed-set.ts";

/** An upstream query, as its callbacks see it. */
interface RunningQuery {
  readonly startMs: number;
}

export type UpstreamResult =
  | {
      readonly kind: "reply";
      readonly message: Buffer;
      readonly rcode: number;
      readonly isWhole: boolean;
      readonly server: Server;
      /** The server was asked for less than its clients have asked for: signatures may be missing, or AD. */
      readonly lacksExtras: boolean;
      /** Something is missing because of the client's own limits, or a server was left out for this client alone. */
      readonly isClientLimit: boolean;
      /** A server that comes before in the list and might give another reply soon. */
      readonly passedOver: Server | undefined;
    }
  | {
      readonly kind: "failed";
      readonly failures: readonly ServerFailure[];
      readonly wasSilent: boolean;
      /** The server's extended error, as an option. */
      readonly extendedError: Buffer | undefined;
      readonly isClientLimit: boolean;
    };

/** What a server has replied to the same question of another client, for which a server before it was left out. */
export interface EarlierReply {
  readonly message: Buffer;
  readonly rcode: number;
  readonly server: Server;
  readonly lacksExtras: boolean;
}

/** Why one server gave no answer. */
export interface ServerFailure {
  readonly server: string;
  readonly reason: string;
}

export interface UpstreamQueryPlan {
  readonly nameservers: readonly Nameserver[];
  /** For each of these servers the EDNS option that tells it about the client; undefined where no server is told. */
  readonly clientOptions: readonly (Uint8Array | undefined)[] | undefined;
  /** The part of these that loop back to the client. */
  readonly looping: readonly Nameserver[];
  /** The number of the client whose query was first. */
  readonly clientNumber: number;
  /** The time at which the first waiter's query arrived. */
  readonly arrivedMs: number;
  readonly policy: ForwardPolicy;
  readonly hedges: boolean;
  readonly fetchesWhole: boolean;
  /** Replies are parsed strictly, and scrubbed. */
  readonly checksReplies: boolean;
  readonly usesTcp: boolean;
  /** The first client's query came over TCP. */
  readonly isStream: boolean;
  /** The answer may take any number of messages, so the query needs a TCP connection of its own. */
  readonly isTransfer: boolean;
  /** When the time budget of the first waiter ends. */
  readonly endMs: number;
  readonly dial: Dial;
  /** Sees what is sent to servers, and what they reply. */
  readonly tap: QueryTap | undefined;
  /** The first client's TCP connections to a server. */
  readonly streamsTo: (nameserver: Nameserver) => Pick<StreamPool, "send" | "openDedicated" | "note" | "isBlocked">;
  /** The first client's queries to a server. */
  readonly queueTo: (nameserver: Nameserver) => ServerQueue;
  /** The client's share of bytes, for a reply that is held. */
  readonly share: Pick<Share, "take" | "give">;
  /** A hash of the name. */
  readonly nameHash: number;
  /** The query; ids are written into it. */
  readonly message: Buffer;
  readonly questionEnd: number;
  /** Its OPT is ours and may be removed for a server without EDNS. */
  readonly isOptOurs: boolean;
  /** The index in the list to start at, modulo its length, if servers rotate. */
  readonly rotation: number;
  /** Used if no server before its own answers. */
  readonly earlier: EarlierReply | undefined;
}

/** Shared by all upstream queries: there may be thousands, so each stores only its own data. */
export interface UpstreamQueryHooks {
  readonly now: () => number;
  readonly random: () => number;
  readonly deadlines: Deadlines;
  readonly meter?: Pick<Meter, "recordReply" | "recordFailure"> | undefined;
  readonly onResult: (query: RunningQuery, result: UpstreamResult) => void;
  /** It takes so long that a stale answer may be served. */
  readonly onLate: (query: RunningQuery) => void;
}

/** An object with at most one deadline. */
export interface DeadlineTarget {
  /** The step of its deadline; undefined without one. Only Deadlines writes it, and the index among the targets of the step. */
  step: number | undefined;
  indexInStep: number;
  onDue(): void;
}

const STEP_MS = 10;

/**
 * Timeouts for many objects of which almost none time out. All share one timer, and deadlines within the
 * same ten milliseconds expire together.
 */
export class Deadlines {
  readonly #now: () => number;
  readonly #steps = new Map<number, IndexedSet<DeadlineTarget>>();
  #timer: NodeJS.Timeout | undefined;
  #armedFor = Number.POSITIVE_INFINITY;
  /** When the timer is to fire. */
  #firesMs = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Replaces the previous deadline. Never early, and late by one step at most. */
  set(target: DeadlineTarget, atMs: number): void {
    const step = Math.ceil(atMs / STEP_MS);
    if (target.step === step) return;
    this.clear(target);
    target.step = step;
    let others = this.#steps.get(step);
    if (others === undefined) this.#steps.set(step, (others = new IndexedSet()));
    target.indexInStep = others.add(target);
    if (step < this.#armedFor) this.#arm(step);
  }

  clear(target: DeadlineTarget): void {
    const { step } = target;
    if (step === undefined) return;
    target.step = undefined;
    const others = this.#steps.get(step);
    // While its step expires, the target is in no list, even if a new list was made for that step.
    if (others?.at(target.indexInStep) !== target) return;
    others.remove(target.indexInStep);
    if (others.size === 0) this.#steps.delete(step);
  }

  /** Clearing a deadline leaves the timer as it is: a timer that fires in vain costs less. */
  #arm(step: number): void {
    clearTimeout(this.#timer);
    this.#armedFor = step;
    const nowMs = this.#now();
    this.#firesMs = Math.max(nowMs, step * STEP_MS);
    this.#timer = setTimeout(() => this.#onTimer(), this.#firesMs - nowMs);
  }

  /** Timers run before sockets: after this process was blocked, replies may be waiting in sockets, and are read first. */
  #onTimer(): void {
    this.#armedFor = Number.POSITIVE_INFINITY;
    if (this.#now() - this.#firesMs > STEP_MS) setImmediate(() => this.#expire());
    else this.#expire();
  }

  #expire(): void {
    const now = this.#now();
    const expired = [...this.#steps.keys()].filter((step) => step * STEP_MS <= now).toSorted((a, b) => a - b);
    for (const step of expired) {
      const targets = this.#steps.get(step);
      this.#steps.delete(step);
      for (const target of targets ?? []) {
        // An earlier callback of this loop may have cleared or changed the deadline.
        if (target.step !== step) continue;
        target.step = undefined;
        guard.run("timer", 0, () => target.onDue());
      }
    }
    const next = Math.min(...this.#steps.keys());
    if (next < this.#armedFor) this.#arm(next);
  }
}
