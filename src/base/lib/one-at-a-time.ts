/**
 * OneAtATime: work that many may request. It begins at once, and requests that come meanwhile share one more round after it, so
 * nothing that they know of is missed.
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
