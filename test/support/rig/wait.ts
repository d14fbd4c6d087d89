/**
 * Owns waiting for something that nobody announces. Looking often keeps the rig fast, and looking less often the longer it
 * takes leaves the machine to what is waited for. How long is no measure of anything: a test that passes never waits in
 * vain, so the limit is what a machine needs that has much else to do. It names what was waited for.
 */

export async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

export const WAIT_TIMEOUT_MS = 90_000;
const FIRST_LOOK_MS = 5;
const LOOK_MS_MAX = 100;

/** everyMs: always so often, where a moment must not be missed. */
export type WaitOptions = { readonly timeoutMs?: number; readonly everyMs?: number };

export async function waitFor<T>(
  what: string,
  look: () => T | undefined | Promise<T | undefined>,
  { timeoutMs = WAIT_TIMEOUT_MS, everyMs }: WaitOptions = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (let pauseMs = everyMs ?? FIRST_LOOK_MS; ; pauseMs = everyMs ?? Math.min(pauseMs * 1.25, LOOK_MS_MAX)) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`);
    await pause(pauseMs);
  }
}

/** The timer also keeps the test alive meanwhile, which a helper process that was let go does not. */
export async function inTime<T>(promise: Promise<T>, what: string, timeoutMs = WAIT_TIMEOUT_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${timeoutMs} ms in vain for ${what}`)), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
