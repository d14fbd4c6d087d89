/**
 * ServerQueue: what one container sends to one server. As many queries as its window has are outstanding; the others wait
 * here and not in the server, where the queries of other containers would wait behind them.
 */
import { guard } from "../../base/lib/guard.ts";
import { Outstanding, type OutstandingQuery } from "./outstanding.ts";
import { Window } from "./window.ts";

/** A query in a queue. Only the queue writes to it. */
export interface QueuedQuery extends OutstandingQuery {
  sentMs: number;
  /** The round of the window in which it was sent. */
  round: number;
  /** What sends it; undefined unless it waits. */
  send: (() => void) | undefined;
}

export class ServerQueue {
  readonly #client: number;
  readonly #now: () => number;
  readonly #window = new Window();
  readonly #outstanding = new Outstanding<QueuedQuery>();
  /** In the order in which they came; those that were cancelled are passed over. */
  readonly #line: QueuedQuery[] = [];
  /** How many of the line wait. */
  #waiting = 0;
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
    if (this.#waiting > 0 || this.#outstanding.size >= this.#window.limit) return false;
    this.#enter(query, now);
    return true;
  }

  /** Calls `send` once the query may be sent; never, if it is cancelled before. */
  wait(query: QueuedQuery, send: () => void): void {
    query.send = send;
    this.#line.push(query);
    this.#waiting++;
    this.#armTimer();
  }

  /** No longer wanted while it waits. One that was sent stays, because the server still has it. */
  cancel(query: QueuedQuery): void {
    if (query.send === undefined) return;
    query.send = undefined;
    this.#waiting--;
    if (this.#line[0] === query) this.#firstWaiting();
  }

  /** The server has answered the query. */
  recordAnswer(query: QueuedQuery, now: number): void {
    if (!this.#outstanding.delete(query)) return;
    this.#record(query, now);
    if (this.#waiting > 0) this.#sendWaiting();
  }

  /** The server has the query no more. */
  leave(query: QueuedQuery): void {
    if (this.#outstanding.delete(query) && this.#waiting > 0) this.#sendWaiting();
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
    for (let query = this.#firstWaiting(); query?.send !== undefined; query = this.#firstWaiting()) {
      if (this.#outstanding.size >= this.#window.limit) return;
      const { send } = query;
      this.cancel(query);
      this.#enter(query, this.#now());
      // Deferred: a query that fails at once leaves at once, and a long queue would make a deep stack.
      guard.defer(this.#client, send);
    }
  }

  /** Those before it that were cancelled leave the line. */
  #firstWaiting(): QueuedQuery | undefined {
    const line = this.#line;
    while (line.length > 0 && line[0]?.send === undefined) line.shift();
    return line[0];
  }

  /** What is late is lost, or the server waits for others and works on other queries meanwhile. */
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
