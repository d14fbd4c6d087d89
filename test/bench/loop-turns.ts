// Turns of the event loop: the longest, and those with the most processor time, without and with a collection of garbage.

import { PerformanceObserver } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";

import { threadMs } from "../../src/kernel/libc.ts";
import { ownMs } from "./own-time.ts";

interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

interface Turn extends Span {
  readonly ownMs: number;
  readonly cpuMs: number;
}

export interface LongestTurns {
  readonly longestMs: number;
  /** Processor time. */
  readonly withoutCollectionMs: number;
  /** 0 where there was none. */
  readonly withCollectionMs: number;
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
    let last = readClocks();
    const measure = (): void => {
      const now = readClocks();
      const own = now.own - last.own;
      if (own >= TURN_MS_MIN)
        this.#turns.push({ startMs: last.wall, endMs: now.wall, ownMs: own, cpuMs: now.cpu - last.cpu });
      last = now;
      if (!this.#isOver) setImmediate(measure);
    };
    setImmediate(measure);
  }

  async end(): Promise<LongestTurns> {
    this.#isOver = true;
    // What the observer has been told last.
    await nextTurn();
    this.#observer.disconnect();
    const hasCollection = (turn: Turn): boolean => this.#collections.some((each) => overlap(turn, each));
    return {
      longestMs: Math.max(0, ...this.#turns.map((turn) => turn.ownMs)),
      withoutCollectionMs: mostCpuMs(this.#turns.filter((turn) => !hasCollection(turn))),
      withCollectionMs: mostCpuMs(this.#turns.filter(hasCollection)),
    };
  }
}

function mostCpuMs(turns: readonly Turn[]): number {
  return Math.max(0, ...turns.map((turn) => turn.cpuMs));
}

function overlap(a: Span, b: Span): boolean {
  return a.startMs < b.endMs && b.startMs < a.endMs;
}

function readClocks(): { readonly own: number; readonly cpu: number; readonly wall: number } {
  return { own: ownMs(), cpu: threadMs(), wall: performance.now() };
}
