// Manual clock: replaces the global timers, which the program uses, and advances only on demand. Node's sockets and
// promises have timers of their own and are not affected. node:test has such a clock, too, but on Node 20 its timers
// ignore `refresh`.

type Timer = {
  readonly act: () => void;
  readonly waitMs: number;
  dueMs: number;
};

export class Clock implements Disposable {
  readonly #setTimeout = globalThis.setTimeout;
  readonly #clearTimeout = globalThis.clearTimeout;
  readonly #timers = new Set<Timer>();
  #nowMs = 0;

  constructor() {
    const start = (act: () => void, waitMs: number): object => this.#start(act, waitMs);
    globalThis.setTimeout = start as unknown as typeof setTimeout;
    globalThis.clearTimeout = ((timer: object) => this.#timers.delete(timer as Timer)) as typeof clearTimeout;
  }

  // The current time, for code with a clock parameter.
  readonly now = (): number => this.#nowMs;

  // Number of pending timers.
  get pending(): number {
    return this.#timers.size;
  }

  // Time until the next timer is due.
  get untilNextMs(): number {
    return Math.min(...[...this.#timers].map(({ dueMs }) => dueMs)) - this.#nowMs;
  }

  // Advances by this many milliseconds, from one timer to the next.
  advance(byMs: number): void {
    const untilMs = this.#nowMs + byMs;
    for (;;) {
      const [next] = [...this.#timers].filter(({ dueMs }) => dueMs <= untilMs).toSorted((a, b) => a.dueMs - b.dueMs);
      if (next === undefined) break;
      this.#nowMs = next.dueMs;
      this.#timers.delete(next);
      next.act();
    }
    this.#nowMs = untilMs;
  }

  [Symbol.dispose](): void {
    globalThis.setTimeout = this.#setTimeout;
    globalThis.clearTimeout = this.#clearTimeout;
  }

  #start(act: () => void, waitMs: number): object {
    const timer = {
      act,
      waitMs,
      dueMs: this.#nowMs + waitMs,
      refresh: () => {
        timer.dueMs = this.#nowMs + waitMs;
        this.#timers.add(timer);
        return timer;
      },
      ref: () => timer,
      unref: () => timer,
    };
    this.#timers.add(timer);
    return timer;
  }
}
