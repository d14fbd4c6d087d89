/**
 * DeclaredNames: the names that the operator declares, in the settings and in records files. A container finds those of
 * its Compose project first, then those of its networks, then those for everybody; the first that has a name is all
 * that counts for it.
 */
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import { type DeclaredName, type RecordScope, scopeText } from "../../base/model/declared-name.ts";
import type { Settings } from "../../config/settings.ts";
import type { LabelPolicy } from "../../base/model/name-choices.ts";
import {
  MISS,
  type NameSearch,
  type OwnName,
  type QuestionName,
  type VisibleNames,
  type NameRecords,
} from "../../base/model/visible-names.ts";
import { wireLabels } from "../../base/dns/name.ts";
import { LabelTable, StoredName } from "../../base/model/label-table.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { projectOf } from "../../container/facts/compose.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { NameSource } from "../../container/names/source/name-source.ts";
import { SuffixTable } from "../../container/names/source/suffix-table.ts";

/** What a list shows of a name that has many records, or long ones. */
const RECORDS_LISTED = 8;
const TEXT_LISTED = 100;
const WILDCARD = "*.";

class VisibleDeclarations implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.declared;
  readonly #tables: readonly DeclaredTable[];

  /** In order of precedence. */
  constructor(tables: readonly DeclaredTable[]) {
    this.#tables = tables;
  }

  find(name: QuestionName, search: NameSearch): number {
    for (const table of this.#tables) {
      const entry = table.find(name);
      if (entry === undefined) continue;
      search.trace?.record("names", entry.origin);
      return search.withRecords(entry);
    }
    search.trace?.record("names", "not a declared name");
    return MISS;
  }

  *list(): Iterable<OwnName> {
    for (const table of this.#tables) for (const entry of table.entries()) yield entry.listed();
  }

  /** Reverse names are declared as names. */
  pointer(): undefined {
    return undefined;
  }
}

export class DeclaredNames implements NameSource {
  #labels: LabelPolicy;
  #tables = new Map<string, DeclaredTable>();

  constructor({ labels }: Pick<Settings, "labels">) {
    this.#labels = labels;
  }

  configure({ labels }: Pick<Settings, "labels">): void {
    this.#labels = labels;
  }

  /** Sets all names. Existing views do not change. */
  set(names: readonly DeclaredName[]): void {
    const tables = new Map<string, DeclaredTable>();
    for (const each of names) {
      const key = keyOf(each.scope);
      const table = tables.get(key) ?? new DeclaredTable();
      table.add(each);
      tables.set(key, table);
    }
    this.#tables = tables;
  }

  namesFor(container: ContainerFact): VisibleNames | undefined {
    if (this.#tables.size === 0) return undefined;
    const project = projectOf(container, this.#labels);
    const networks = container.endpoints.map(({ networkName }) => networkName).toSorted();
    const scopes: readonly RecordScope[] = [
      ...(project === undefined ? [] : [{ kind: "project" as const, name: project }]),
      ...networks.map((name) => ({ kind: "network" as const, name })),
      EVERYBODY,
    ];
    return this.#visibleIn(scopes);
  }

  namesForEverybody(): VisibleNames | undefined {
    return this.#visibleIn([EVERYBODY]);
  }

  #visibleIn(scopes: readonly RecordScope[]): VisibleNames | undefined {
    const tables = scopes.flatMap((scope) => this.#tables.get(keyOf(scope)) ?? []);
    return tables.length === 0 ? undefined : new VisibleDeclarations(tables);
  }
}

const EVERYBODY: RecordScope = { kind: "everybody", name: "" };

function keyOf({ kind, name }: RecordScope): string {
  return `${kind} ${name}`;
}

/** The declared names of one scope. An exact name comes before wildcards, of which the longest wins. */
class DeclaredTable {
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

/** A declared name in the form in which queries are answered. */
class DeclaredEntry implements NameRecords {
  readonly ttlSeconds: number | undefined;
  readonly sets: ReadonlyMap<number, readonly Uint8Array[]>;
  readonly alias: QuestionName | undefined;
  readonly containers: readonly QuestionName[];
  /** `dns11 explain` shows it. */
  readonly origin: string;
  readonly #declared: DeclaredName;

  constructor(declared: DeclaredName) {
    const { name, scope, where, ttlSeconds, records, alias, containers } = declared;
    this.#declared = declared;
    this.ttlSeconds = ttlSeconds;
    const sets = new Map<number, Uint8Array[]>();
    for (const { type, data } of records) sets.set(type, [...(sets.get(type) ?? []), data]);
    this.sets = sets;
    this.alias = alias === undefined ? undefined : storedName(alias);
    this.containers = containers.flatMap((each) => storedName(each) ?? []);
    this.origin = `"${name}" is declared for ${scopeText(scope)} at ${where}`;
  }

  /** For lists of names. */
  listed(): OwnName {
    const { name, scope, records, alias, containers } = this.#declared;
    const of = (type: number): Uint8Array => Buffer.concat(this.sets.get(type) ?? []);
    const others = records.filter(({ type }) => type !== TYPE.A && type !== TYPE.AAAA).map(({ text }) => text);
    const texts = [
      ...(alias === undefined ? [] : [`CNAME ${alias}`]),
      ...others,
      ...containers.map((each) => `container ${each}`),
    ];
    return {
      name,
      source: `declared for ${scopeText(scope)}`,
      records: texts.slice(0, RECORDS_LISTED).map((text) => clipped(text)),
      holders: [],
      entry: this,
      v4: of(TYPE.A),
      v6: of(TYPE.AAAA),
    };
  }
}

function clipped(text: string): string {
  return text.length > TEXT_LISTED ? `${text.slice(0, TEXT_LISTED)}...` : text;
}

function storedName(name: string): StoredName | undefined {
  const labels = wireLabels(name);
  return labels && new StoredName(labels);
}
