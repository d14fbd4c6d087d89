/**
 * IndexedSet: objects that come and go by the thousand, each found and removed by its index. A Set would do, but
 * V8 gives it a new table whenever the old one is full of deleted entries; once one such table has become old, all that
 * follow it, and the objects in them, stay until a full garbage collection.
 */
export class IndexedSet<T> {
  readonly #items: (T | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#items.length - this.#free.length;
  }

  /** Returns the object's index, which may have been another object's before. */
  add(item: T): number {
    const index = this.#free.pop() ?? this.#items.length;
    this.#items[index] = item;
    return index;
  }

  at(index: number): T | undefined {
    return this.#items[index];
  }

  /** Removes an object that is in the set. */
  remove(index: number): void {
    this.#items[index] = undefined;
    this.#free.push(index);
  }

  /** Objects that are added meanwhile may be left out. */
  *[Symbol.iterator](): Generator<T> {
    for (const item of this.#items) if (item !== undefined) yield item;
  }
}
