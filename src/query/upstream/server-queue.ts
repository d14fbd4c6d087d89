/**
 * ServerQueue: what one container sends to one server. As many queries as its window has are outstanding; the others wait
 * here and not in the server, where the queries of other containers would wait behind them.
 */
import { guard } from "../../base/lib/guard.ts";
import { Window } from "./window.ts";

/** A query in a queue. Only the queue writes to it. */
export interface QueuedQuery {
  sentMs: number;
  /** The round of the window in which it was sent. */
  round: number;
}

export class ServerQueue {
  readonly #client: number;
  readonly #now: () => number;
  readonly #window = new Window();
  /** What the server has, in the order in which it was sent. */
  readonly #outstanding = new Set<QueuedQuery>();
  /** What sends each query that waits. */
  readonly #waiting = new Map<QueuedQuery, () => void>();
  #timer: NodeJS.Timeout | undefined;

  /** `client`: the container's number. */
  constructor(client: number, now: () => number) {
    this.#client = client;
    this.#now = now;
  }

  /** Whether the query may be sent now, which the caller then does. */
  tryEnter(query: QueuedQuery, now: number): boolean {
    // In a window that is half empty, it does not matter what is late.
    if (this.#outstanding.size > this.#window.limit >> 1) this.#forgetLate(now);
    if (this.#waiting.size > 0 || this.#outstanding.size >= this.#window.limit) return false;
    this.#enter(query, now);
    return true;
  }

  /** Calls `send` once the query may be sent; never, if it is cancelled before. */
  wait(query: QueuedQuery, send: () => void): void {
    this.#waiting.set(query, send);
    this.#armTimer();
  }

  /** No longer wanted while it waits. One that was sent stays, because the server still has it. */
  cancel(query: QueuedQuery): void {
    this.#waiting.delete(query);
  }

  /** The server has answered the query. */
  recordAnswer(query: QueuedQuery, now: number): void {
    if (!this.#outstanding.delete(query)) return;
    this.#record(query, now);
    if (this.#waiting.size > 0) this.#sendWaiting();
  }

  /** The server has the query no more. */
  leave(query: QueuedQuery): void {
    if (this.#outstanding.delete(query) && this.#waiting.size > 0) this.#sendWaiting();
  }

  #enter(query: QueuedQuery, now: number): void {
    this.#outstanding.add(query);
    query.sentMs = now;
    query.round = this.#window.roundOf(this.#outstanding.size);
  }

  #record({ round, sentMs }: QueuedQuery, now: number): void {
    this.#window.record(round, now - sentMs, now);
  }

  #sendWaiting(): void {
    for (const [query, send] of this.#waiting) {
      if (this.#outstanding.size >= this.#window.limit) return;
      this.#waiting.delete(query);
      this.#enter(query, this.#now());
      // Deferred: a query that fails at once leaves at once, and a long queue would make a deep stack.
      guard.defer(this.#client, send);
    }
  }

  /** What is late is lost, or the server waits for others and works on other queries meanwhile. */
  #forgetLate(now: number): void {
    for (const query of this.#outstanding) {
      if (now - query.sentMs < this.#window.lateMs) return;
      this.#outstanding.delete(query);
      this.#record(query, now);
    }
  }

  /** One timer, while queries wait, for when the oldest one outstanding is late. */
  #armTimer(): void {
    if (this.#timer !== undefined) return;
    const [oldest] = this.#outstanding;
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
    if (this.#waiting.size > 0) this.#armTimer();
  }
}
