/**
 * Deadlines: timeouts for many objects of which almost none time out. All share one timer, and deadlines within the
 * same ten milliseconds expire together.
 */
import { guard } from "../../base/lib/guard.ts";
import { Places } from "../../base/lib/places.ts";

/** An object with at most one deadline. */
export interface DeadlineTarget {
  /** The step of its deadline; undefined without one. Only Deadlines writes it, and the place among those of the step. */
  step: number | undefined;
  place: number;
  onDue(): void;
}

const STEP_MS = 10;

export class Deadlines {
  readonly #now: () => number;
  readonly #steps = new Map<number, Places<DeadlineTarget>>();
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
    if (others === undefined) this.#steps.set(step, (others = new Places()));
    target.place = others.add(target);
    if (step < this.#armedFor) this.#arm(step);
  }

  clear(target: DeadlineTarget): void {
    const { step } = target;
    if (step === undefined) return;
    target.step = undefined;
    const others = this.#steps.get(step);
    // While its step expires, it is in none, also if the step has come again.
    if (others?.at(target.place) !== target) return;
    others.remove(target.place);
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

  /** Timers run before sockets: where this process has stood still, replies may wait there, and are read first. */
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
        // A callback before it may have cleared or changed it.
        if (target.step !== step) continue;
        target.step = undefined;
        guard.run("timer", 0, () => target.onDue());
      }
    }
    const next = Math.min(...this.#steps.keys());
    if (next < this.#armedFor) this.#arm(next);
  }
}
