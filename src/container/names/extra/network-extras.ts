/**
 * NetworkExtras: the extra names on one network: names and wildcards to the endpoints that have them.
 */
import { presentation, wireLabels } from "../../../base/dns/name.ts";
import { WILDCARD } from "../../../base/model/extra-name.ts";
import { LabelTable } from "../../../base/model/label-table.ts";
import { SuffixTable } from "../source/suffix-table.ts";
import type { QuestionName } from "../../../base/model/visible-names.ts";
import { type EndpointAddresses, NameEntry } from "../source/name-entry.ts";

/** A wildcard's endpoints, and how many labels it has: the longest wins. */
export class WildcardEntry extends NameEntry {
  readonly text: string;
  readonly labels: number;

  constructor(text: string) {
    super();
    this.text = text;
    this.labels = text.split(".").length;
  }
}

export class NetworkExtras {
  readonly #exact = new LabelTable<NameEntry>();
  readonly #wildcards = new SuffixTable<WildcardEntry>();
  readonly #names = new Map<string, readonly string[]>();

  findExact({ folded, foldedLength, labelCount, hashOf }: QuestionName): NameEntry | undefined {
    return this.#exact.find(folded, foldedLength, hashOf[labelCount] as number);
  }

  findWildcard(name: QuestionName): WildcardEntry | undefined {
    return this.#wildcards.find(name);
  }

  /** Names, then wildcards, as text. */
  *list(): Iterable<readonly [string, NameEntry]> {
    for (const [key, entry] of this.#exact.entries()) yield [presentation(key, 0, key.length), entry];
    for (const [, entry] of this.#wildcards.entries()) yield [entry.text, entry];
  }

  /** Replaces the names of an endpoint. */
  put(holder: string, names: readonly string[], addresses: EndpointAddresses): void {
    this.remove(holder);
    if (names.length === 0) return;
    this.#names.set(holder, names);
    for (const name of names) this.#entryOf(name)?.put(holder, addresses);
  }

  remove(holder: string): void {
    for (const name of this.#names.get(holder) ?? []) {
      const { labels, isWildcard } = keyOf(name);
      if (labels === undefined) continue;
      const table = isWildcard ? this.#wildcards : this.#exact;
      const entry = table.get(labels);
      entry?.remove(holder);
      if (entry?.hasHolders === false) table.delete(labels);
    }
    this.#names.delete(holder);
  }

  #entryOf(name: string): NameEntry | undefined {
    const { labels, isWildcard } = keyOf(name);
    if (labels === undefined) return undefined;
    const known = (isWildcard ? this.#wildcards : this.#exact).get(labels);
    if (known !== undefined) return known;
    if (!isWildcard) {
      const entry = new NameEntry();
      this.#exact.set(labels, entry);
      return entry;
    }
    const entry = new WildcardEntry(name);
    this.#wildcards.set(labels, entry);
    return entry;
  }
}

function keyOf(name: string): { readonly labels: Uint8Array | undefined; readonly isWildcard: boolean } {
  const isWildcard = name.startsWith(WILDCARD);
  return { labels: wireLabels(isWildcard ? name.slice(WILDCARD.length) : name), isWildcard };
}
