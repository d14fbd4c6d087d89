/**
 * DeclaredEntry: a declared name in the form in which queries are answered.
 */
import { wireLabels } from "../../../base/dns/name.ts";
import { type DeclaredName, scopeText } from "../../../base/model/declared-name.ts";
import { StoredName } from "../../../base/model/stored-name.ts";
import type { NameRecords, QuestionName } from "../../../base/model/visible-names.ts";

export class DeclaredEntry implements NameRecords {
  readonly ttlSeconds: number | undefined;
  readonly sets: ReadonlyMap<number, readonly Uint8Array[]>;
  readonly alias: QuestionName | undefined;
  readonly containers: readonly QuestionName[];
  /** For `dns11 explain`. */
  readonly origin: string;

  constructor({ name, scope, where, ttlSeconds, records, alias, containers }: DeclaredName) {
    this.ttlSeconds = ttlSeconds;
    const sets = new Map<number, Uint8Array[]>();
    for (const { type, data } of records) sets.set(type, [...(sets.get(type) ?? []), data]);
    this.sets = sets;
    this.alias = alias === undefined ? undefined : storedName(alias);
    this.containers = containers.flatMap((each) => storedName(each) ?? []);
    this.origin = `"${name}" is declared for ${scopeText(scope)} at ${where}`;
  }
}

function storedName(name: string): StoredName | undefined {
  const labels = wireLabels(name);
  return labels && new StoredName(labels);
}
