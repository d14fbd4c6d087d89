/**
 * OneAtATime: work that many callers may request. It begins at once, and requests that come meanwhile share one more run after it, so that
 * no change that a caller knows of is missed.
 */
export class OneAtATime {
  readonly #work: () => Promise<void>;
  readonly #onError: (error: unknown) => void;
  #isUnderWay = false;
  #isRequested = false;

  constructor(work: () => Promise<void>, onError: (error: unknown) => void) {
    this.#work = work;
    this.#onError = onError;
  }

  request(): void {
    this.#isRequested = true;
    if (!this.#isUnderWay) void this.#workUntilDone();
  }

  async #workUntilDone(): Promise<void> {
    this.#isUnderWay = true;
    while (this.#isRequested) {
      this.#isRequested = false;
      try {
        await this.#work();
      } catch (error) {
        this.#onError(error);
      }
    }
    this.#isUnderWay = false;
  }
}

/**
 * Resolves when all have ended, also those beside one that has failed: a caller that reacts to the failure must not be overtaken by the
 * others. Throws the first failure.
 */
export async function allDone(works: readonly Promise<unknown>[]): Promise<void> {
  for (const each of await Promise.allSettled(works)) if (each.status === "rejected") throw each.reason;
}

/** Runs `work` for each item, at most `atOnce` at a time; results keep the order of the items. */
export async function mapConcurrent<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) results[index] = await work(items[index] as T);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  return results;
}

/**
 * Expensive work that many may request at once. A caller always gets a result that was computed after
 * its request, so it is never old. Requests within `everyMs` share one result, so that they cannot keep the process
 * busy.
 */
export class CoalescedCall<T> {
  readonly #make: () => T | Promise<T>;
  readonly #everyMs: number;
  #next: Promise<T> | undefined;
  #lastMs = -Infinity;

  constructor(make: () => T | Promise<T>, everyMs: number) {
    this.#make = make;
    this.#everyMs = everyMs;
  }

  async get(): Promise<T> {
    this.#next ??= this.#later();
    return await this.#next;
  }

  async #later(): Promise<T> {
    const restMs = this.#lastMs + this.#everyMs - performance.now();
    // Even without a delay, so that requests of the same turn of the event loop share the call.
    await new Promise<void>((resolve) => setTimeout(resolve, Math.max(0, restMs)));
    this.#next = undefined;
    this.#lastMs = performance.now();
    return await this.#make();
  }
}

/** Lets all waiters pass once it is opened. */
export interface Latch {
  readonly isOpen: boolean;
  readonly passed: Promise<void>;
}

export function latch(): Latch & { readonly open: () => void } {
  let isOpen = false;
  let pass = (): void => undefined;
  const passed = new Promise<void>((resolve) => (pass = resolve));
  const open = (): void => {
    isOpen = true;
    pass();
  };
  return {
    get isOpen() {
      return isOpen;
    },
    passed,
    open,
  };
}

/** Returns early when aborted. */
export async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
  });
}

/**
 * Blocks the thread, and with it the event loop. Only for short waits in work that must not be interrupted: inside a
 * container's namespace, or between two reads of a file.
 */
const NEVER_NOTIFIED = new Int32Array(new SharedArrayBuffer(4));

export function sleepSync(ms: number): void {
  Atomics.wait(NEVER_NOTIFIED, 0, 0, ms);
}
