/**
 * Deadlines: what is to happen at a time if nothing else happens before, for very many who almost never get that far. All
 * of them share one timer; what falls into the same ten milliseconds falls together.
 */
import { guard } from "../../base/lib/guard.ts";

/** One who waits; it has at most one deadline. */
export interface DeadlineTarget {
  /** In which step it is due; undefined while it waits for nothing. Kept here, set by Deadlines alone. */
  step: number | undefined;
  onDue(): void;
}

const STEP_MS = 10;

export class Deadlines {
  readonly #now: () => number;
  readonly #steps = new Map<number, Set<DeadlineTarget>>();
  #timer: NodeJS.Timeout | undefined;
  #armedFor = Number.POSITIVE_INFINITY;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Instead of the deadline that it had. Never early, and late by a step at most. */
  set(due: DeadlineTarget, atMs: number): void {
    const step = Math.ceil(atMs / STEP_MS);
    if (due.step === step) return;
    this.clear(due);
    due.step = step;
    const others = this.#steps.get(step);
    if (others === undefined) this.#steps.set(step, new Set([due]));
    else others.add(due);
    if (step < this.#armedFor) this.#arm(step);
  }

  clear(due: DeadlineTarget): void {
    const { step } = due;
    if (step === undefined) return;
    due.step = undefined;
    const others = this.#steps.get(step);
    others?.delete(due);
    if (others?.size === 0) this.#steps.delete(step);
  }

  /** The timer is left as it is when a deadline is cleared: one that fires for nobody costs less. */
  #arm(step: number): void {
    clearTimeout(this.#timer);
    this.#armedFor = step;
    this.#timer = setTimeout(() => this.#onTimer(), Math.max(0, step * STEP_MS - this.#now()));
  }

  #onTimer(): void {
    this.#armedFor = Number.POSITIVE_INFINITY;
    const now = this.#now();
    const over = [...this.#steps.keys()].filter((step) => step * STEP_MS <= now).toSorted((a, b) => a - b);
    for (const step of over) {
      const dues = this.#steps.get(step);
      this.#steps.delete(step);
      for (const due of dues ?? []) {
        // Whoever came before may have cleared it, or set it anew.
        if (due.step !== step) continue;
        due.step = undefined;
        guard.run("timer", 0, () => due.onDue());
      }
    }
    const next = Math.min(...this.#steps.keys());
    if (next < this.#armedFor) this.#arm(next);
  }
}
