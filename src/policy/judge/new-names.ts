/**
 * NewNames: how many names that were not queried before one wildcard has allowed in this minute. Whoever sends data in names needs
 * a new one for each piece.
 */
const MINUTE_MS = 60_000;
/** Then the one that was queried least recently is new again. */
const NAMES_MAX = 2_000;

export class NewNames {
  readonly #perMinute: number;
  readonly #known = new Set<string>();
  #minuteMs = -Infinity;
  #count = 0;

  constructor(perMinute: number) {
    this.#perMinute = perMinute;
  }

  /** Whether the name may be queried. `isPeek`: it is not, so it does not count. */
  admit(name: string, nowMs: number, isPeek: boolean): boolean {
    const known = this.#known;
    if (known.has(name)) {
      if (isPeek) return true;
      known.delete(name);
      known.add(name);
      return true;
    }
    const isOver = nowMs - this.#minuteMs >= MINUTE_MS;
    if (isPeek) return isOver || this.#count < this.#perMinute;
    if (isOver) [this.#minuteMs, this.#count] = [nowMs, 0];
    if (this.#count >= this.#perMinute) return false;
    this.#count++;
    if (known.size >= NAMES_MAX) {
      const [oldest = ""] = known;
      known.delete(oldest);
    }
    known.add(name);
    return true;
  }
}
