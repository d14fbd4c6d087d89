/**
 * Freshness: whether what was listed from a store is still answered. While the store is away, what is known counts for a
 * limited time. Before the first list nothing does.
 */
const MS = 1_000;

export class Freshness {
  readonly #staleSecondsMax: number;
  readonly #now: () => number;
  #hasList = false;
  /** Undefined while the store confirms what is known. */
  #staleSince: number | undefined;

  constructor(staleSecondsMax: number, now: () => number = () => performance.now()) {
    this.#staleSecondsMax = staleSecondsMax;
    this.#now = now;
  }

  /** There has been a list. */
  get hasList(): boolean {
    return this.#hasList;
  }

  setListed(): void {
    this.#hasList = true;
  }

  /** Whether the store confirms what is known. */
  setCurrent(isCurrent: boolean): void {
    this.#staleSince = isCurrent ? undefined : (this.#staleSince ?? this.#now());
  }

  get isStale(): boolean {
    return this.#staleSince !== undefined;
  }

  /** How long ago the store last confirmed what is known; undefined while it does. */
  get staleMs(): number | undefined {
    return this.#staleSince === undefined ? undefined : this.#now() - this.#staleSince;
  }

  get isUsable(): boolean {
    return this.#hasList && (this.staleMs ?? 0) <= this.#staleSecondsMax * MS;
  }
}
