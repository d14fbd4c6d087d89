/**
 * Retry: retries an action with backoff as long as it fails.
 */
import { guard } from "./guard.ts";
import { setTimeout as sleep } from "node:timers/promises";

export class Retry {
  readonly #act: () => void;
  readonly #firstMs: number;
  readonly #lastMs: number;
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(act: () => void, firstMs: number, lastMs: number) {
    this.#act = act;
    this.#firstMs = firstMs;
    this.#lastMs = lastMs;
  }

  /** Reports the outcome of a try; schedules the next one after a failure. */
  note(hasFailed: boolean): void {
    this.close();
    if (!hasFailed) {
      this.#failures = 0;
      return;
    }
    const waitMs = backoffMs(this.#failures++, this.#firstMs, this.#lastMs, Math.random());
    this.#timer = setTimeout(() => guard.run("timer", 0, this.#act), waitMs).unref();
  }

  /** Stops retrying until the next `note`. */
  close(): void {
    clearTimeout(this.#timer);
  }
}

/** The longest wait, and the time between two checks. */
interface DrainLimits {
  readonly drainMs: number;
  readonly drainQuietMs: number;
}

/** Waits until all received work is done, but not longer than `drainMs`. */
export async function drained(isBusy: () => boolean, { drainMs, drainQuietMs }: DrainLimits): Promise<void> {
  const deadlineMs = performance.now() + drainMs;
  while (isBusy() && performance.now() < deadlineMs) await sleep(drainQuietMs);
}

/** The random number to use for retries that are spread already, or are the only ones. */
export const NO_JITTER = 0.5;

/** The delay before a retry: doubles up to a last value, with jitter so that many do not retry at once. */
export function backoffMs(attempt: number, firstMs: number, lastMs: number, random: number): number {
  const waitMs = Math.min(lastMs, firstMs * 2 ** Math.min(attempt, 30));
  return Math.round(waitMs * (0.75 + random / 2));
}
