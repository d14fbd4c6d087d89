/**
 * SuffixTable: a table keyed by the end of a name, for wildcards: `*.shop.test` is stored under `shop.test`. The longest
 * suffix wins (RFC 4592), and a name is not below itself. Parsing a question hashes its leading labels only, so a
 * suffix is hashed here: once for each length in labels that the table contains, which are few.
 */
import type { QuestionName } from "../../../base/model/visible-names.ts";
import { HASH_BASIS, LabelTable, hashByte } from "../../../base/model/label-table.ts";

export class SuffixTable<V> {
  readonly #table = new LabelTable<V>();
  /** How many suffixes have so many labels, and these numbers, the largest first. */
  readonly #counts = new Map<number, number>();
  #lengths: readonly number[] = [];

  get size(): number {
    return this.#table.size;
  }

  entries(): Iterable<readonly [Uint8Array, V]> {
    return this.#table.entries();
  }

  get(suffix: Uint8Array): V | undefined {
    return this.#table.get(suffix);
  }

  set(suffix: Uint8Array, value: V): void {
    if (this.#table.get(suffix) === undefined) this.#count(suffix, 1);
    this.#table.set(suffix, value);
  }

  delete(suffix: Uint8Array): void {
    if (this.#table.get(suffix) === undefined) return;
    this.#count(suffix, -1);
    this.#table.delete(suffix);
  }

  /** The value of the longest suffix that the name is below. */
  find(name: QuestionName): V | undefined {
    for (const labels of this.#lengths) {
      if (labels >= name.labelCount) continue;
      const start = name.lengthOf[name.labelCount - labels] as number;
      const suffix = name.folded.subarray(start, name.foldedLength);
      let hash = HASH_BASIS;
      for (let at = 0; at < suffix.length; at++) hash = hashByte(hash, suffix[at] as number);
      const value = this.#table.find(suffix, suffix.length, hash);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  #count(suffix: Uint8Array, change: number): void {
    let labels = 0;
    for (let at = 0; at < suffix.length; at += 1 + (suffix[at] as number)) labels++;
    const count = (this.#counts.get(labels) ?? 0) + change;
    if (count === 0) this.#counts.delete(labels);
    else this.#counts.set(labels, count);
    this.#lengths = [...this.#counts.keys()].toSorted((a, b) => b - a);
  }
}
