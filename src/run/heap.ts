/**
 * Heap: how far memory grows before a collection, and what is given back. Where the machine has room, V8 lets its heap
 * grow to several times what is in use: a container that queries ever new names would have us take 480 MB for a cache
 * of 32 MB.
 */
import { setFlagsFromString } from "node:v8";

import { LIMITS } from "../base/limits.ts";
import { limitFreeMemory, trimMalloc } from "../kernel/malloc.ts";

export function limitMemoryGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${LIMITS.heapGrowthPercent}`);
  limitFreeMemory(LIMITS.freeMemoryBytes);
}

/** Gives back what starting and attaching took from the C library, when V8 has collected it. */
export function trimMallocLater(): void {
  setTimeout(trimMalloc, LIMITS.trimAfterMs).unref();
}
