/**
 * DeclaredTable: the declared names of one scope. An exact name comes before wildcards, of which the longest wins.
 */
import { wireLabels } from "../../../base/dns/name.ts";
import type { DeclaredName } from "../../../base/model/declared-name.ts";
import { LabelTable } from "../../../base/model/label-table.ts";
import { SuffixTable } from "../source/suffix-table.ts";
import type { QuestionName } from "../../../base/model/visible-names.ts";
import { DeclaredEntry } from "./declared-entry.ts";

const WILDCARD = "*.";

export class DeclaredTable {
  readonly #exact = new LabelTable<DeclaredEntry>();
  readonly #wildcards = new SuffixTable<DeclaredEntry>();

  add(declared: DeclaredName): void {
    const { name } = declared;
    const isWildcard = name.startsWith(WILDCARD);
    const labels = wireLabels(isWildcard ? name.slice(WILDCARD.length) : name);
    if (labels === undefined) return;
    (isWildcard ? this.#wildcards : this.#exact).set(labels, new DeclaredEntry(declared));
  }

  *entries(): Iterable<DeclaredEntry> {
    for (const [, entry] of this.#exact.entries()) yield entry;
    for (const [, entry] of this.#wildcards.entries()) yield entry;
  }

  find(name: QuestionName): DeclaredEntry | undefined {
    const { folded, foldedLength, labelCount, hashOf } = name;
    return this.#exact.find(folded, foldedLength, hashOf[labelCount] as number) ?? this.#wildcards.find(name);
  }
}
