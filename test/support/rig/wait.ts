// Owns waiting for something that nobody announces. Looking often keeps the rig fast; a deadline that names what was
// waited for keeps a stuck test readable.

export async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

export type WaitOptions = { readonly timeoutMs?: number; readonly everyMs?: number };

export async function waitFor<T>(
  what: string,
  look: () => T | undefined | Promise<T | undefined>,
  { timeoutMs = 10_000, everyMs = 10 }: WaitOptions = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain for ${what}`);
    await pause(everyMs);
  }
}

// The timer also keeps the test alive meanwhile, which a helper process that was let go does not.
export async function inTime<T>(promise: Promise<T>, what: string, timeoutMs = 10_000): Promise<T> {
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
