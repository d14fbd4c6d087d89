/**
 * Polling for a condition that sends no notification. It polls often at first, which keeps tests fast, and soon less often,
 * which leaves the machine to the work: most polls ask a dns11 for its whole status, or start a program. The timeout is generous because it only matters to failing tests; the
 * error names what was waited for.
 */

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";

import { rulesNow } from "./evidence.ts";

export async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

export const WAIT_TIMEOUT_MS = 90_000;
const FIRST_POLL_MS = 5;
const POLL_MS_MAX = 200;
const POLL_GROWTH = 1.5;

/** everyMs: a constant poll interval, for conditions that last only a moment. */
export type WaitOptions = { readonly timeoutMs?: number; readonly everyMs?: number };

export async function waitFor<T>(
  what: string,
  poll: () => T | undefined | Promise<T | undefined>,
  { timeoutMs = WAIT_TIMEOUT_MS, everyMs }: WaitOptions = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (let pauseMs = everyMs ?? FIRST_POLL_MS; ; pauseMs = everyMs ?? Math.min(pauseMs * POLL_GROWTH, POLL_MS_MAX)) {
    const found = await poll();
    if (found !== undefined) return found;
    if (performance.now() > deadline) {
      throw new Error(`timed out after ${timeoutMs} ms waiting for ${what}\n${await rulesNow()}`.trimEnd());
    }
    await pause(pauseMs);
  }
}

/** The timer also keeps the test process alive, which an unreferenced child process does not. */
export async function inTime<T>(promise: Promise<T>, what: string, timeoutMs = WAIT_TIMEOUT_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`timed out after ${timeoutMs} ms waiting for ${what}`)), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until a state is the expected one: the kernel removes links some time after their namespace. */
export async function untilSame(what: string, read: () => Promise<unknown>, expected: unknown): Promise<void> {
  let last: unknown;
  try {
    await waitFor(what, async () => (isDeepStrictEqual((last = await read()), expected) ? true : undefined));
  } catch {
    assert.deepEqual(last, expected);
  }
}
