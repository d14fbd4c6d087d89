/**
 * VerifyQueue: what waits to be verified. A limited number is verified at the same time, each of them once; one that is added
 * while it is verified gets another turn, because its verification may have begun before what has changed.
 */
import { LIMITS } from "../../base/limits.ts";
import { guard } from "../../base/lib/guard.ts";
import { ownSlice } from "../../base/lib/slices.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attachment } from "./attachment.ts";

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
      await ownSlice();
      await this.#verify(each);
    } catch (error) {
      guard.report(error, "attach");
    }
    this.#running.delete(each);
    this.#begin();
  }
}

/** How often to poll a verification that was already running. */
const REPAIR_POLL_MS = 10;

/**
 * One verification of an attachment with its result, for those who were asked to repair it.
 * Verifies now and returns whether queries arrive; waits for a verification that was already running.
 */
export async function verifyAndWait(attachment: Attachment): Promise<boolean> {
  const startMs = Date.now();
  // The machine's clock may be set back meanwhile.
  const deadlineMs = performance.now() + LIMITS.repairMs;
  await attachment.verify();
  for (;;) {
    const { state, isOpen } = attachment;
    if (state.kind === "attached" && state.verifiedMs >= startMs) return true;
    if (!isOpen || (state.kind === "failed" && state.atMs >= startMs) || performance.now() > deadlineMs) return false;
    await sleep(REPAIR_POLL_MS);
  }
}
