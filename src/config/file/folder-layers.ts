/**
 * FolderLayers: the settings in folders of other programs, which the settings name: `dnsmasq-dir` and `kube-dns-dir`.
 */
import type { NamedFolder } from "../settings.ts";
import { Precedence, type SettingsLayer } from "../layers.ts";
import type { Key } from "../keys.ts";
import type { FolderSettings } from "./named-folders.ts";

export type FolderKind = "dnsmasq" | "kube-dns";

type ReadFolder = (kind: FolderKind, folder: string) => Promise<FolderSettings>;

export interface FolderLayer extends SettingsLayer {
  readonly folder: string;
  /** Options that mean nothing here, each with file and line. */
  readonly withoutMeaning: readonly string[];
}

const KINDS: readonly FolderKind[] = ["dnsmasq", "kube-dns"];

/** The layers below these. Throws a Fault that lists every mistake. */
export async function readFolderLayers(layers: readonly SettingsLayer[], read: ReadFolder): Promise<FolderLayer[]> {
  const precedence = new Precedence(layers);
  const found: FolderLayer[] = [];
  for (const kind of KINDS) {
    const folder = precedence.valueOf(`${kind}-dir`);
    if (folder === undefined) continue;
    const { values, places, withoutMeaning } = await read(kind, folder);
    const where = (key: Key): string => `${places[key] ?? folder}: ${key}`;
    found.push({ source: kind, values, where, folder, withoutMeaning });
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
  const precedence = new Precedence(layers);
  const paths = KINDS.flatMap((kind) => precedence.valueOf(`${kind}-dir`) ?? []);
  return await Promise.all(paths.map(async (path) => ({ path, fingerprint: await fingerprintOf(path) })));
}
