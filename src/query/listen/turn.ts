/**
 * Turn: which round of the event loop this is. libuv may call back many times for one readable socket in one round; a
 * listener that drained each time without a bound would keep its neighbours waiting.
 */
export class Turn {
  #number = 0;
  #isArmed = false;

  /** A number that is the same within one round and another in the next. */
  get now(): number {
    if (!this.#isArmed) {
      this.#isArmed = true;
      setImmediate(() => {
        this.#isArmed = false;
        this.#number++;
      });
    }
    return this.#number;
  }
}
