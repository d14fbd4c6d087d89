/**
 * A random order for the addresses of one answer, uniformly drawn, without allocating. The spread over clients is all
 * that hangs on it, so a small fast generator serves; nothing secret is drawn from it.
 */
export class Shuffler {
  #state: number;
  #order = new Uint16Array(64);

  constructor(seed: number) {
    this.#state = seed | 0 || 1;
  }

  /** The numbers below `count` in a random order; valid until the next call. */
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

  /** xorshift32, scaled to a range; the bias of scaling 2^32 steps to at most 65,536 is out of sight. */
  #below(bound: number): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return Math.floor(((x >>> 0) / 0x1_0000_0000) * bound);
  }
}
