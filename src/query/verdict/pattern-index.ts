/**
 * PatternIndex: values by pattern, found by name. A lookup costs one step for each number of labels that patterns have, however
 * many patterns there are.
 */
import type { QuestionName } from "../../base/model/visible-names.ts";
import { type Pattern, matchesLabels } from "./pattern.ts";

/** A name whose bytes can be read as text. */
export interface IndexedName extends QuestionName {
  readonly folded: Buffer;
}

interface Entry<V> {
  readonly pattern: Pattern;
  readonly value: V;
}

const NONE: readonly never[] = [];

export class PatternIndex<V> {
  /** By the labels of the pattern. */
  readonly #entries = new Map<string, Entry<V>[]>();
  /** How many patterns have so many labels. */
  readonly #tailLabels = new Map<number, number>();

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  add(pattern: Pattern, value: V): void {
    const { tail, tailLabels } = pattern;
    const others = this.#entries.get(tail);
    if (others === undefined) this.#entries.set(tail, [{ pattern, value }]);
    else others.push({ pattern, value });
    this.#tailLabels.set(tailLabels, (this.#tailLabels.get(tailLabels) ?? 0) + 1);
  }

  remove({ tail, tailLabels }: Pattern, isMeant: (value: V) => boolean): void {
    const entries = this.#entries.get(tail) ?? [];
    const at = entries.findIndex(({ value }) => isMeant(value));
    if (at === -1) return;
    entries.splice(at, 1);
    if (entries.length === 0) this.#entries.delete(tail);
    const left = (this.#tailLabels.get(tailLabels) ?? 1) - 1;
    if (left === 0) this.#tailLabels.delete(tailLabels);
    else this.#tailLabels.set(tailLabels, left);
  }

  /** The values of all patterns that match. */
  find({ folded, foldedLength, labelCount, lengthOf }: IndexedName): readonly V[] {
    let found: V[] | undefined;
    for (const tailLabels of this.#tailLabels.keys()) {
      if (tailLabels > labelCount) continue;
      const start = lengthOf[labelCount - tailLabels] as number;
      for (const { pattern, value } of this.#entries.get(folded.toString("latin1", start, foldedLength)) ?? NONE)
        if (matchesLabels(pattern, labelCount)) (found ??= []).push(value);
    }
    return found ?? NONE;
  }
}
