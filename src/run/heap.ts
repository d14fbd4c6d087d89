/**
 * Heap: how far memory grows before a collection, and what is given back. Where the machine has room, V8 lets its heap
 * grow to several times what is in use: a container that queries ever new names would have us take 480 MB for a cache
 * of 32 MB.
 */
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { LIMITS } from "../base/limits.ts";
import { limitFreeMemory, trimMalloc } from "../kernel/malloc.ts";

export function limitMemoryGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${LIMITS.heapGrowthPercent}`);
  limitFreeMemory(LIMITS.freeMemoryBytes);
}

/**
 * Gives back what starting and attaching took. V8 collects it only once more is allocated, which an idle process may never do: with 40
 * containers a third of the heap is garbage then.
 */
function giveBackLater(): void {
  setTimeout(() => {
    if (getHeapStatistics().used_heap_size <= LIMITS.collectedHeapBytes) collectGarbage();
    trimMalloc();
  }, LIMITS.giveBackAfterMs).unref();
}

/** V8 has no other way for a program to ask for it. */
export function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  setFlagsFromString("--no-expose-gc");
  collect();
}

/** What changes once, when startup has finished: every container that ran has been attached, or has failed. */
export function onceStarted(isStarted: () => boolean, onStarted: () => void): void {
  const timer = setInterval(() => {
    if (!isStarted()) return;
    clearInterval(timer);
    endStartOfCompiler();
    giveBackLater();
    onStarted();
  }, LIMITS.startCheckMs);
  timer.unref();
}

const { starting, running } = LIMITS.bytecodeUntilOptimized;

/**
 * How much V8 inlines, and when. Many small functions answer a query, which keeps them readable. With V8's
 * default limit the outermost ones have used it up before the innermost are reached.
 *
 * Such code takes long to compile. Attaching a thousand containers when dns11 starts would have most of what attaches compiled, by
 * threads that take the processors from it, and then it is over. So V8 waits longer until then.
 * Must run before the first answer: code that is already compiled stays as it is.
 */
export function tuneCompiler(): void {
  setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${LIMITS.inlinedBytecode}`);
  optimizeAfter(starting);
}

/** From now on what runs often is what answers queries. */
function endStartOfCompiler(): void {
  optimizeAfter(running);
}

function optimizeAfter(bytes: number): void {
  setFlagsFromString(`--interrupt-budget=${bytes}`);
}
