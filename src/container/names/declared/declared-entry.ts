/**
 * DeclaredEntry: a declared name in the form in which queries are answered.
 */
import { wireLabels } from "../../../base/dns/name.ts";
import { TYPE } from "../../../base/dns/record-type.ts";
import { type DeclaredName, scopeText } from "../../../base/model/declared-name.ts";
import { StoredName } from "../../../base/model/stored-name.ts";
import type { NameRecords, OwnName, QuestionName } from "../../../base/model/visible-names.ts";

export class DeclaredEntry implements NameRecords {
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

/** What a list shows of a name that has many records, or long ones. */
const RECORDS_LISTED = 8;
const TEXT_LISTED = 100;

function clipped(text: string): string {
  return text.length > TEXT_LISTED ? `${text.slice(0, TEXT_LISTED)}...` : text;
}

function storedName(name: string): StoredName | undefined {
  const labels = wireLabels(name);
  return labels && new StoredName(labels);
}
