/**
 * KernelTurns: which namespace gets kernel answers next, one after the other. The kernel holds its lock of all
 * interfaces while it attaches a program, some 14 ms, and whoever starts containers needs that lock: so most of the time is
 * theirs. Until then the process answers.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { LIMITS } from "../../base/limits.ts";
import { guard } from "../../base/lib/guard.ts";

export class KernelTurns {
  readonly #take: (containerId: string) => Promise<void>;
  readonly #waiting = new Set<string>();
  #isTaking = false;

  constructor(take: (containerId: string) => Promise<void>) {
    this.#take = take;
  }

  add(containerId: string): void {
    this.#waiting.add(containerId);
    if (!this.#isTaking) void this.#takeAll();
  }

  /** Namespaces that wait are due again at their next verification. */
  clear(): void {
    this.#waiting.clear();
  }

  async #takeAll(): Promise<void> {
    this.#isTaking = true;
    for (const containerId of this.#waiting) {
      this.#waiting.delete(containerId);
      try {
        await this.#take(containerId);
      } catch (error) {
        guard.report(error, "attach");
      }
      await sleep(LIMITS.kernelTurnPauseMs, undefined, { ref: false });
    }
    this.#isTaking = false;
  }
}
