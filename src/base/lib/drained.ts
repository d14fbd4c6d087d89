/**
 * Waits until what has been received is answered, but not for what takes too long.
 */
import { setTimeout as sleep } from "node:timers/promises";

/** How long it waits at most, and between two looks. */
interface DrainLimits {
  readonly drainMs: number;
  readonly drainQuietMs: number;
}

export async function drained(isBusy: () => boolean, { drainMs, drainQuietMs }: DrainLimits): Promise<void> {
  const deadlineMs = performance.now() + drainMs;
  while (isBusy() && performance.now() < deadlineMs) await sleep(drainQuietMs);
}
