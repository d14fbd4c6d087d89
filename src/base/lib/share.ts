/**
 * Pool and Share: something that there is so much of for all, and of which nobody gets more than their share. Whoever
 * holds little gets more even when the pool is empty, so that those who took it all cannot keep a newcomer out; the pool
 * is overdrawn then by that little for each.
 */
export interface PoolLimits {
  /** For all together. */
  readonly whole: number;
  /** For each, at most. */
  readonly each: number;
  /** For each, whatever the others hold. */
  readonly always: number;
}

export class Pool {
  readonly #limits: PoolLimits;
  #taken = 0;

  constructor(limits: PoolLimits) {
    this.#limits = limits;
  }

  get taken(): number {
    return this.#taken;
  }

  open(): Share {
    return new Share(this, this.#limits);
  }

  /** For shares of this pool alone. */
  move(amount: number): void {
    this.#taken += amount;
  }
}

export class Share {
  readonly #pool: Pool;
  readonly #limits: PoolLimits;
  #taken = 0;

  constructor(pool: Pool, limits: PoolLimits) {
    this.#pool = pool;
    this.#limits = limits;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Whether so much more is to be had. */
  has(amount: number): boolean {
    const { whole, each, always } = this.#limits;
    const held = this.#taken + amount;
    return held <= always || (held <= each && this.#pool.taken + amount <= whole);
  }

  /** Takes so much, or nothing; whether it was to be had. */
  take(amount: number): boolean {
    if (!this.has(amount)) return false;
    this.#taken += amount;
    this.#pool.move(amount);
    return true;
  }

  give(amount: number): void {
    this.#taken -= amount;
    this.#pool.move(-amount);
  }
}
