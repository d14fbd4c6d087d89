/**
 * Shuffler: draws a uniformly random order for the addresses of an answer, without allocation. It only spreads load
 * over addresses, so a small fast generator is enough; it is not for secrets.
 */
export class Shuffler {
  #state: number;
  #order = new Uint16Array(64);

  constructor(seed: number) {
    this.#state = seed | 0 || 1;
  }

  /** The numbers below `count` in random order; valid until the next call. */
  order(count: number): Uint16Array {
    if (count > this.#order.length) this.#order = new Uint16Array(count);
    const order = this.#order;
    for (let i = 0; i < count; i++) {
      const j = this.#below(i + 1);
      order[i] = order[j] as number;
      order[j] = i;
    }
    return order;
  }

  /** xorshift32, scaled to a range; for at most 65,536 the bias of scaling 2^32 steps is negligible. */
  #below(bound: number): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return Math.floor(((x >>> 0) / 0x1_0000_0000) * bound);
  }
}
