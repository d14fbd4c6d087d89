/**
 * Heap: how far it grows before it is collected. V8 lets it become several times what is in use where the machine has
 * room; a container that asks for ever new names would have us take 480 MB for a cache of 32.
 */
import { setFlagsFromString } from "node:v8";

import { LIMITS } from "../config/limits.ts";

export function keepHeapSmall(): void {
  setFlagsFromString(`--heap-growing-percent=${LIMITS.heapGrowthPercent}`);
}
