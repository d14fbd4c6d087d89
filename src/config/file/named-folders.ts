/**
 * NamedFolders: the folders of other programs that the settings name, read into layers of settings.
 */
import { join } from "node:path";

import { readDnsmasqFiles } from "../dnsmasq/dnsmasq-files.ts";
import { type ReadConfigMap, readConfigMap } from "../kube-dns/config-map.ts";
import { listFolder, readOwnText } from "./files.ts";

/** As dnsmasq leaves them out, and Debian's packages. */
const NOT_OF_DNSMASQ = /^\.|~$|^#.*#$|\.dpkg-(dist|old|new)$/;
/** A mounted ConfigMap has hidden links to its current version. */
const HIDDEN = /^\./;

/** Settings from a folder. */
export interface FolderSettings extends ReadConfigMap {
  /** Options that mean nothing here, each with file and line. */
  readonly withoutMeaning: readonly string[];
}

/** Throws a Fault that lists every mistake. */
export async function readDnsmasqFolder(folder: string): Promise<FolderSettings> {
  const files = [];
  for (const name of await listFolder(folder, NOT_OF_DNSMASQ)) {
    const path = join(folder, name);
    files.push({ path, text: await readOwnText(path) });
  }
  return readDnsmasqFiles(files);
}

/** Throws a Fault that lists every mistake. */
export async function readKubeDnsFolder(folder: string): Promise<FolderSettings> {
  const keys = [];
  for (const key of await listFolder(folder, HIDDEN)) {
    const path = join(folder, key);
    keys.push({ key, path, text: await readOwnText(path) });
  }
  return { ...readConfigMap(keys), withoutMeaning: [] };
}
