/**
 * Heap: how far memory grows before it is collected, and what is given back. V8 lets its heap become several times what is
 * in use where the machine has room; a container that asks for ever new names would have us take 480 MB for a cache of 32.
 */
import { setFlagsFromString } from "node:v8";

import { LIMITS } from "../base/limits.ts";
import { trimMalloc } from "../kernel/libc.ts";

export function limitHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${LIMITS.heapGrowthPercent}`);
}

/** What starting and attaching took from the C library is given back once, when that is over. */
export function trimMallocOnce(isStarted: () => boolean): void {
  const timer = setInterval(() => {
    if (!isStarted()) return;
    clearInterval(timer);
    trimMalloc();
  }, LIMITS.trimCheckMs);
  timer.unref();
}
