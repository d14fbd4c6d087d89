/**
 * Gathered: work that many may ask for at once, done seldom. Whoever asks gets what was made after they asked, so it is
 * never old; those who ask within a while get it together, so that nobody can keep the process busy by asking.
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
    // Also where none is to be waited for: those who asked in the same moment are to be in.
    await new Promise<void>((resolve) => setTimeout(resolve, Math.max(0, restMs)).unref());
    this.#next = undefined;
    this.#lastMs = performance.now();
    return await this.#make();
  }
}
