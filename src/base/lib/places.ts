/**
 * Places: objects that come and go by the thousand, each found and removed by the number of its place. A Set would do, but
 * V8 gives it a new table whenever the old one is full of deleted entries; once one such table has become old, all that
 * follow it, and the objects in them, stay until a full garbage collection.
 */
export class Places<T> {
  readonly #items: (T | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#items.length - this.#free.length;
  }

  /** Returns its place, which may have been another one's before. */
  add(item: T): number {
    const place = this.#free.pop() ?? this.#items.length;
    this.#items[place] = item;
    return place;
  }

  at(place: number): T | undefined {
    return this.#items[place];
  }

  /** Of an object that is there. */
  remove(place: number): void {
    this.#items[place] = undefined;
    this.#free.push(place);
  }

  /** What is added meanwhile may be left out. */
  *[Symbol.iterator](): Generator<T> {
    for (const item of this.#items) if (item !== undefined) yield item;
  }
}
