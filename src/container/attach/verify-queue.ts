/**
 * VerifyQueue: what waits to be verified. A limited number is verified at the same time, each of them once; one that is added
 * while it is verified gets another turn, because its verification may have begun before what has changed.
 */
import { LIMITS } from "../../base/limits.ts";
import { guard } from "../../base/lib/guard.ts";
import { ownRound } from "../../base/lib/own-round.ts";

export class VerifyQueue<T> {
  readonly #verify: (each: T) => Promise<void>;
  readonly #waiting = new Set<T>();
  readonly #running = new Set<T>();
  #isStopped = false;

  constructor(verify: (each: T) => Promise<void>) {
    this.#verify = verify;
  }

  add(each: T): void {
    this.#waiting.add(each);
    this.#begin();
  }

  /** Begins no more. */
  stop(): void {
    this.#isStopped = true;
  }

  resume(): void {
    this.#isStopped = false;
    this.#begin();
  }

  #begin(): void {
    for (const each of this.#waiting) {
      if (this.#isStopped || this.#running.size >= LIMITS.verifyAtOnce) return;
      if (this.#running.has(each)) continue;
      this.#waiting.delete(each);
      this.#running.add(each);
      void this.#run(each);
    }
  }

  async #run(each: T): Promise<void> {
    try {
      await ownRound();
      await this.#verify(each);
    } catch (error) {
      guard.report(error, "attach");
    }
    this.#running.delete(each);
    this.#begin();
  }
}
