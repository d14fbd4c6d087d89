/**
 * FolderLayers: the settings in folders that the settings name, as features read them: those of other programs.
 */
import type { FolderSettings } from "../feature-entry.ts";
import { FEATURE_FOLDERS, type Key, type PlainKey } from "../keys.ts";
import { Precedence, type SettingsLayer } from "../layers.ts";
import type { NamedFolder } from "../settings.ts";

export interface FolderLayer extends SettingsLayer, Pick<FolderSettings, "withoutMeaning"> {
  readonly folder: string;
}

/** `key` names the folder in the settings. */
type ReadFolder = (key: string, folder: string) => Promise<FolderSettings>;

/** Reads one in this thread, as its feature does. Throws a Fault that lists every mistake. */
export async function readFolder<T extends object>(key: string, folder: string): Promise<T> {
  const format = FEATURE_FOLDERS[key];
  if (format === undefined) throw new Error(`no folder is named by ${key}`);
  const reader = await format.reader();
  return (await reader.readFolder(folder)) as T;
}

/** The layers below these. Throws a Fault that lists every mistake. */
export async function readFolderLayers(layers: readonly SettingsLayer[], read: ReadFolder): Promise<FolderLayer[]> {
  const found: FolderLayer[] = [];
  for (const { key, source, folder } of foldersIn(layers)) {
    const { values, places, withoutMeaning } = await read(key, folder);
    const where = (of: Key): string => `${places[of] ?? folder}: ${of}`;
    found.push({ source, values, where, folder, withoutMeaning });
  }
  return found;
}

/** The folders as they were when they were read. */
type FingerprintOf = (folder: string) => Promise<string>;

/** What differs where a folder has changed since. Taken before it is read, so that no change is missed. */
export async function namedFolders(
  layers: readonly SettingsLayer[],
  fingerprintOf: FingerprintOf,
): Promise<readonly NamedFolder[]> {
  const found = foldersIn(layers);
  return await Promise.all(found.map(async ({ folder: path }) => ({ path, fingerprint: await fingerprintOf(path) })));
}

/** Those of settings that are named, in the order of features. */
function foldersIn(layers: readonly SettingsLayer[]): (Pick<FolderLayer, "source" | "folder"> & { key: string })[] {
  const precedence = new Precedence(layers);
  return Object.entries(FEATURE_FOLDERS).flatMap(([key, { source }]) => {
    const folder = precedence.valueOf(key as PlainKey);
    return source !== undefined && typeof folder === "string" ? [{ key, source, folder }] : [];
  });
}
