/**
 * PatternIndex: values by pattern, found by name. A lookup costs one step for each number of labels that patterns have, however
 * many patterns there are, and makes no string of the name.
 */
import { sameBytes } from "../dns/name.ts";
import { HASH_BASIS, hashByte, hashOf } from "./label-table.ts";
import type { QuestionName } from "./visible-names.ts";
import { type Pattern, matchesLabels } from "./name-pattern.ts";

interface Entry<V> {
  readonly pattern: Pattern;
  readonly value: V;
}

const NONE: readonly never[] = [];

export class PatternIndex<V> {
  /** By the hash of the labels of the pattern. */
  readonly #entries = new Map<number, Entry<V>[]>();
  /** The numbers of labels that patterns have, and how many patterns have each. */
  #tailLabels: number[] = [];
  readonly #patterns = new Map<number, number>();

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  add(pattern: Pattern, value: V): void {
    const { tail, tailLabels } = pattern;
    const hash = hashOf(tail);
    const others = this.#entries.get(hash);
    if (others === undefined) this.#entries.set(hash, [{ pattern, value }]);
    else others.push({ pattern, value });
    this.#count(tailLabels, 1);
  }

  remove({ tail, tailLabels }: Pattern, isMeant: (value: V) => boolean): void {
    const hash = hashOf(tail);
    const entries = this.#entries.get(hash) ?? [];
    const at = entries.findIndex(({ value }) => isMeant(value));
    if (at === -1) return;
    entries.splice(at, 1);
    if (entries.length === 0) this.#entries.delete(hash);
    this.#count(tailLabels, -1);
  }

  /** The values of all patterns that match. */
  find({ folded, foldedLength, labelCount, lengthOf, hashOf: hashes }: QuestionName): readonly V[] {
    let found: V[] | undefined;
    for (const tailLabels of this.#tailLabels) {
      if (tailLabels > labelCount) continue;
      const start = lengthOf[labelCount - tailLabels] as number;
      const hash = start === 0 ? (hashes[labelCount] as number) : hashFrom(folded, start, foldedLength);
      for (const { pattern, value } of this.#entries.get(hash) ?? NONE) {
        const { tail } = pattern;
        if (!matchesLabels(pattern, labelCount) || tail.length !== foldedLength - start) continue;
        if (sameBytes(tail, 0, folded, start, tail.length)) (found ??= []).push(value);
      }
    }
    return found ?? NONE;
  }

  #count(tailLabels: number, more: number): void {
    const left = (this.#patterns.get(tailLabels) ?? 0) + more;
    if (left === 0) this.#patterns.delete(tailLabels);
    else this.#patterns.set(tailLabels, left);
    if (left === 0 || left === more) this.#tailLabels = [...this.#patterns.keys()];
  }
}

function hashFrom(bytes: Uint8Array, start: number, end: number): number {
  let hash = HASH_BASIS;
  for (let at = start; at < end; at++) hash = hashByte(hash, bytes[at] as number);
  return hash;
}
