/**
 * CoalescedCall: expensive work that many may request at once. A caller always gets a result that was computed after
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
    // Even with no delay: requests of the same turn share the call.
    await new Promise<void>((resolve) => setTimeout(resolve, Math.max(0, restMs)));
    this.#next = undefined;
    this.#lastMs = performance.now();
    return await this.#make();
  }
}
