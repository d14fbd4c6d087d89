/**
 * MultiMap: any number of values of each key, in the order in which they were added. A change costs the same however many
 * there are, and the only value of a key, as most keys have it, takes no memory for a set.
 */
export class MultiMap<V extends object> {
  readonly #entries = new Map<string, V | Set<V>>();

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  of(key: string): Iterable<V> {
    const known = this.#entries.get(key);
    return known === undefined ? [] : allIn(known);
  }

  /** The values of each key. */
  *groups(): Iterable<Iterable<V>> {
    for (const known of this.#entries.values()) yield allIn(known);
  }

  add(key: string, value: V): void {
    const known = this.#entries.get(key);
    if (known === undefined) this.#entries.set(key, value);
    else if (known instanceof Set) known.add(value);
    else if (known !== value) this.#entries.set(key, new Set([known, value]));
  }

  delete(key: string, value: V): void {
    const known = this.#entries.get(key);
    if (known === value) this.#entries.delete(key);
    if (!(known instanceof Set)) return;
    known.delete(value);
    const [only, another] = known;
    if (only !== undefined && another === undefined) this.#entries.set(key, only);
  }
}

function allIn<V extends object>(known: V | Set<V>): Iterable<V> {
  return known instanceof Set ? known : [known];
}
