// Turns of the event loop: the longest, and the longest in which no garbage was collected.

import { PerformanceObserver } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";

import { ownMs } from "./own-time.ts";

interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

interface Turn extends Span {
  readonly ownMs: number;
}

// Shorter turns are not kept.
const TURN_MS_MIN = 0.5;

export class LoopTurns {
  readonly #turns: Turn[] = [];
  readonly #collections: Span[] = [];
  readonly #observer: PerformanceObserver;
  #isOver = false;

  constructor() {
    this.#observer = new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries())
        this.#collections.push({ startMs: startTime, endMs: startTime + duration });
    });
    this.#observer.observe({ entryTypes: ["gc"] });
    let [lastOwnMs, lastMs] = [ownMs(), performance.now()];
    const measure = (): void => {
      const [own, now] = [ownMs(), performance.now()];
      if (own - lastOwnMs >= TURN_MS_MIN) this.#turns.push({ startMs: lastMs, endMs: now, ownMs: own - lastOwnMs });
      [lastOwnMs, lastMs] = [own, now];
      if (!this.#isOver) setImmediate(measure);
    };
    setImmediate(measure);
  }

  async end(): Promise<{ readonly longestMs: number; readonly withoutCollectionMs: number }> {
    this.#isOver = true;
    // What the observer has been told last.
    await nextTurn();
    this.#observer.disconnect();
    const quiet = this.#turns.filter((turn) => !this.#collections.some((each) => overlap(turn, each)));
    return { longestMs: longest(this.#turns), withoutCollectionMs: longest(quiet) };
  }
}

function overlap(a: Span, b: Span): boolean {
  return a.startMs < b.endMs && b.startMs < a.endMs;
}

function longest(turns: readonly Turn[]): number {
  return Math.max(0, ...turns.map((turn) => turn.ownMs));
}
