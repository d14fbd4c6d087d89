// Owns a clock that stands still until it is told to go on. It takes the place of the global timers, which is what the
// program uses; Node's own sockets and promises have timers of their own and go on as ever. node:test has such a clock,
// too, but on Node 20 its timers do nothing on `refresh`.

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

  // The time on it, for what reads a clock of its own.
  readonly now = (): number => this.#nowMs;

  // Timers that have neither fired nor been cleared.
  get pending(): number {
    return this.#timers.size;
  }

  // Goes on by so many milliseconds, from one timer to the next.
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
