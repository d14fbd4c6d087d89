/**
 * ServerQueue: what one container sends to one server. As many queries as its window has are outstanding; the others wait
 * here and not in the server, where the queries of other containers would wait behind them.
 */
import { guard } from "../../base/lib/guard.ts";
import { LIMITS } from "../../base/limits.ts";

const EPOCH_ANSWERS = 16;

/** The share of the window in use from which on it counts as full. */
const FULL = 0.75;

/** Where answers take this many times the server's own time, queries wait in the server. */
const WAITS = 1.25;

/** Where answers take this part of the former time, the smaller window has helped. */
const SOONER = 0.75;

/** After this many times the server's own time, no answer is expected any more: the server waits for others. */
const LATE = 4;

/** The least number of epochs between trials, where answers take long. */
const TRIAL_EPOCHS = 16;

/** The epoch of a query that is no sample. */
const NO_EPOCH = -1;

interface FormerSize {
  readonly limit: number;
  readonly leastMs: number;
}

interface OutstandingQuery {
  /** The queries sent before and after it; undefined at the ends of the list. */
  older: OutstandingQuery | undefined;
  newer: OutstandingQuery | undefined;
  isOutstanding: boolean;
}

/** A query in a queue. Only the queue writes to it. */
export interface QueuedQuery extends OutstandingQuery {
  sentMs: number;
  /** The epoch of the window in which it was sent. */
  epoch: number;
  /** What sends it; undefined unless it waits. */
  send: (() => void) | undefined;
}

export class ServerQueue {
  readonly #client: number;
  readonly #now: () => number;
  readonly #window = new Window();
  readonly #outstanding = new Outstanding<QueuedQuery>();
  /** In order of arrival; queries that were cancelled are skipped. */
  readonly #queue: QueuedQuery[] = [];
  /** The number of queries in `#queue` that were not cancelled. */
  #waiting = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `client`: the container's number. */
  constructor(client: number, now: () => number) {
    this.#client = client;
    this.#now = now;
  }

  /** Whether the query may be sent now, which the caller then does. */
  tryEnter(query: QueuedQuery, now: number): boolean {
    // In a window that is half empty, late queries do not matter.
    if (this.#outstanding.size > this.#window.limit >> 1) this.#forgetLate(now);
    if (this.#waiting > 0 || this.#outstanding.size >= this.#window.limit) return false;
    this.#enter(query, now);
    return true;
  }

  /** Calls `send` once the query may be sent; never, if it is cancelled before. */
  wait(query: QueuedQuery, send: () => void): void {
    query.send = send;
    this.#queue.push(query);
    this.#waiting++;
    this.#armTimer();
  }

  /** The query is no longer wanted. One that was sent stays, because the server still has it. */
  cancel(query: QueuedQuery): void {
    if (query.send === undefined) return;
    query.send = undefined;
    this.#waiting--;
    if (this.#queue[0] === query) this.#firstWaiting();
  }

  /** The server has answered the query. */
  recordAnswer(query: QueuedQuery, now: number): void {
    if (!this.#outstanding.delete(query)) return;
    this.#record(query, now);
    if (this.#waiting > 0) this.#sendWaiting();
  }

  /** The server no longer has the query. */
  leave(query: QueuedQuery): void {
    if (this.#outstanding.delete(query) && this.#waiting > 0) this.#sendWaiting();
  }

  #enter(query: QueuedQuery, now: number): void {
    this.#outstanding.add(query);
    query.sentMs = now;
    query.epoch = this.#window.epochOf(this.#outstanding.size);
  }

  #record({ epoch, sentMs }: QueuedQuery, now: number): void {
    this.#window.record(epoch, now - sentMs, now);
  }

  #sendWaiting(): void {
    for (let query = this.#firstWaiting(); query?.send !== undefined; query = this.#firstWaiting()) {
      if (this.#outstanding.size >= this.#window.limit) return;
      const { send } = query;
      this.cancel(query);
      this.#enter(query, this.#now());
      // Deferred: a query that fails at once leaves at once, and a long queue would make a deep stack.
      guard.defer(this.#client, send);
    }
  }

  /** Those before it that were cancelled leave the queue. */
  #firstWaiting(): QueuedQuery | undefined {
    const queue = this.#queue;
    while (queue.length > 0 && queue[0]?.send === undefined) queue.shift();
    return queue[0];
  }

  /** A late query is lost, or the server waits for others and works on other queries meanwhile. */
  #forgetLate(now: number): void {
    for (let { oldest } = this.#outstanding; oldest !== undefined; { oldest } = this.#outstanding) {
      if (now - oldest.sentMs < this.#window.lateMs) return;
      this.#outstanding.delete(oldest);
      this.#record(oldest, now);
    }
  }

  /** One timer, while queries wait, for when the oldest one outstanding is late. */
  #armTimer(): void {
    if (this.#timer !== undefined) return;
    const { oldest } = this.#outstanding;
    const now = this.#now();
    this.#timer = setTimeout(
      () => guard.run("timer", this.#client, () => this.#onTimer()),
      Math.max(1, (oldest?.sentMs ?? now) + this.#window.lateMs - now),
    );
  }

  #onTimer(): void {
    this.#timer = undefined;
    this.#forgetLate(this.#now());
    this.#sendWaiting();
    if (this.#waiting > 0) this.#armTimer();
  }
}

/**
 * The queries that a server has, in the order in which they were sent. The queries themselves are the links of a list,
 * because each query of a container that is not in the cache enters and leaves it.
 */
class Outstanding<Query extends OutstandingQuery> {
  #oldest: OutstandingQuery | undefined;
  #newest: OutstandingQuery | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get oldest(): Query | undefined {
    return this.#oldest as Query | undefined;
  }

  add(query: Query): void {
    query.isOutstanding = true;
    query.older = this.#newest;
    if (this.#newest === undefined) this.#oldest = query;
    else this.#newest.newer = query;
    this.#newest = query;
    this.#size++;
  }

  /** Returns whether it was there. */
  delete(query: Query): boolean {
    if (!query.isOutstanding) return false;
    const { older, newer } = query;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    query.older = query.newer = undefined;
    query.isOutstanding = false;
    this.#size--;
    return true;
  }
}

/**
 * How many queries one container may have outstanding at one server. The container's own answers decide: where a
 * smaller window makes them come sooner, the queries only waited in the server, in the way of other containers. Where it
 * does not, the time is the server's own, and the window grows.
 *
 *   growing --(answers take longer than the server's own time, or now and then)--> half of it, for one epoch
 *      ^--(they come as late as before: that is its own time) the former size --'  |
 *      ^--(they come sooner) half of it stays -------------------------------------'
 *
 * An epoch is as many answers as show the shortest time, of queries that met as many others as the window allows. What a window
 * has grown is lost again while it is not used.
 */
export class Window {
  #limit: number = LIMITS.serverWindow.first;
  /** The server's own time for the container's queries, as far as known. */
  #ownMs = Infinity;
  /** It is set while half of it is tried. */
  #former: FormerSize | undefined;
  /** Doubles the window until it has been too large once. */
  #wasTooLarge = false;
  #tryAtMs = -Infinity;
  #epoch = 0;
  #answers = 0;
  #leastMs = Infinity;
  /** Answers since the window was full. */
  #unused = 0;

  get limit(): number {
    return this.#limit;
  }

  /** After this time a query is late. */
  get lateMs(): number {
    return Math.min(LIMITS.retransmitMs, Math.max(LIMITS.serverWindow.lateMs, LATE * this.#ownMs));
  }

  /** The epoch for which a query is a sample, if it is sent while this many others are outstanding; otherwise NO_EPOCH. */
  epochOf(outstanding: number): number {
    return outstanding >= FULL * this.#limit ? this.#epoch : NO_EPOCH;
  }

  /** A query of this epoch was answered, or is late. */
  record(epoch: number, tookMs: number, nowMs: number): void {
    if (epoch === NO_EPOCH) return this.#shrinkUnused();
    this.#unused = 0;
    if (epoch !== this.#epoch) return;
    this.#leastMs = Math.min(this.#leastMs, tookMs);
    this.#answers++;
    if (this.#answers < EPOCH_ANSWERS) return;
    this.#endEpoch(this.#leastMs, nowMs);
    this.#epoch++;
    this.#answers = 0;
    this.#leastMs = Infinity;
  }

  #shrinkUnused(): void {
    this.#unused++;
    if (this.#unused < this.#limit) return;
    this.#unused = 0;
    this.#limit = Math.max(Math.min(this.#limit, LIMITS.serverWindow.first), this.#limit >> 1);
  }

  #endEpoch(leastMs: number, nowMs: number): void {
    const former = this.#former;
    this.#former = undefined;
    if (former !== undefined && leastMs > SOONER * former.leastMs) {
      this.#limit = former.limit;
      this.#ownMs = leastMs;
      return;
    }
    this.#wasTooLarge ||= former !== undefined;
    this.#ownMs = Math.min(this.#ownMs, leastMs);
    const { quickMs, tryEveryMs, least, most } = LIMITS.serverWindow;
    if (leastMs > quickMs && (leastMs > WAITS * this.#ownMs || nowMs >= this.#tryAtMs)) {
      this.#former = { limit: this.#limit, leastMs };
      this.#tryAtMs = nowMs + Math.max(tryEveryMs, TRIAL_EPOCHS * leastMs);
      this.#limit = Math.max(least, this.#limit >> 1);
    } else {
      const more = this.#wasTooLarge ? Math.max(1, this.#limit >> 3) : this.#limit;
      this.#limit = Math.min(most, this.#limit + more);
    }
  }
}
