/**
 * The names that the settings file declares, and the files of the records folder.
 */
import { type DeclaredName, EVERYBODY, type RecordScope } from "../../base/model/declared-name.ts";
import { type NameValue, readNameValue } from "../../config/records/name-value.ts";
import { DeclaredSet } from "../../config/records/declared-set.ts";
import { readOwner } from "../../config/records/record-data.ts";
import { BadSettings } from "../../config/bad-settings.ts";
import { type Kind, Parts, byName, isMap, mapOf, quoteValue } from "../../config/kinds.ts";
import type { Document } from "../../config/file/document.ts";

/** What is declared for a name, by the name as it is written. */
type WrittenRecords = ReadonlyMap<string, NameValue>;

export const WRITTEN: Kind<WrittenRecords> = {
  read: (value) => {
    if (!isMap(value))
      throw new Error(`invalid value ${quoteValue(value)}: use a map, such as {db.shop.test: 10.0.0.5}`);
    const parts = new Parts();
    const records = new Map<string, NameValue>();
    for (const [name, declared] of Object.entries(value)) {
      try {
        records.set(name, readNameValue(readOwner(name), declared));
      } catch (error) {
        parts.refuse(name, () => (error as Error).message);
      }
    }
    parts.end();
    return records;
  },
};

const PROJECTS = byName("project", mapOf({ records: WRITTEN }), "{PROJECT: {records: {db.shop.test: 10.0.0.5}}}");

/** What else declares names. */
export const ALSO = { keys: { projects: PROJECTS }, ofNetworks: { records: WRITTEN } };

/** The keys that declare names. */
interface RecordsKeys {
  readonly records?: WrittenRecords | undefined;
  readonly networks?: Readonly<Record<string, { readonly records?: WrittenRecords | undefined }>> | undefined;
  readonly projects?: Readonly<Record<string, { readonly records?: WrittenRecords | undefined }>> | undefined;
}

/** The names of a settings file; undefined where it declares none. Throws a Fault where they contradict each other. */
export function place(
  _: unknown,
  document: Document,
  path: string,
  file: RecordsKeys,
): readonly DeclaredName[] | undefined {
  const names = declaredNames(file, document, path);
  BadSettings.throwAny(new DeclaredSet().add(names));
  return names.length === 0 ? undefined : names;
}

/** All declared names of a file, each with its place. */
export function declaredNames(
  { records, networks = {}, projects = {} }: RecordsKeys,
  document: Document,
  path: string,
): readonly DeclaredName[] {
  const inScope = (written: WrittenRecords | undefined, at: readonly string[], scope: RecordScope): DeclaredName[] => {
    if (written === undefined) return [];
    const positions = document.keyPositions(at);
    return [...written].map(([name, value]) => {
      const { line, column } = positions.get(name) ?? document.positionOf(at);
      return { name: readOwner(name), scope, where: `${path}:${line}:${column}`, ...value };
    });
  };
  return [
    ...inScope(records, ["records"], EVERYBODY),
    ...Object.entries(networks).flatMap(([name, each]) =>
      inScope(each.records, ["networks", name, "records"], { kind: "network", name }),
    ),
    ...Object.entries(projects).flatMap(([name, each]) =>
      inScope(each.records, ["projects", name, "records"], { kind: "project", name }),
    ),
  ];
}
