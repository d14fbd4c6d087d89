/**
 * Pool and Share: a limited total that is shared, with a limit for each share. A share with little gets more even when
 * the pool is empty, so that shares that use everything cannot block a new one. The pool is overdrawn by that
 * little for each.
 */
export interface PoolLimits {
  /** The total. */
  readonly whole: number;
  /** The limit of each share. */
  readonly each: number;
  /** Guaranteed to each share, whatever the others use. */
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

  /** Called by the shares of this pool. */
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

  /** Whether this amount is available. */
  has(amount: number): boolean {
    const { whole, each, always } = this.#limits;
    const held = this.#taken + amount;
    return held <= always || (held <= each && this.#pool.taken + amount <= whole);
  }

  /** Takes this amount or nothing; returns whether it was available. */
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
