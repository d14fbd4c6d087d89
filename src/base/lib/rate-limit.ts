/**
 * RateLimit: a token bucket: a burst, and a rate per second after that.
 */
interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

export class RateLimit {
  readonly #rate: Rate;
  readonly #now: () => number;
  #left: number;
  #atMs: number;

  /** `now` is a clock in milliseconds. */
  constructor(rate: Rate, now: () => number) {
    this.#rate = rate;
    this.#now = now;
    this.#left = rate.burst;
    this.#atMs = now();
  }

  /** Refills the bucket; returns whether a token is left. */
  has(): boolean {
    const now = this.#now();
    const earned = (Math.max(0, now - this.#atMs) / 1000) * this.#rate.perSecond;
    this.#left = Math.min(this.#rate.burst, this.#left + earned);
    this.#atMs = now;
    return this.#left >= 1;
  }

  /** Whole tokens. */
  get left(): number {
    return this.has() ? Math.floor(this.#left) : 0;
  }

  /** Takes a token if there is one. */
  take(): boolean {
    if (!this.has()) return false;
    this.#left--;
    return true;
  }
}
