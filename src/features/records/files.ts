/**
 * RecordsFiles: reads the files of the records folder: `*.yaml` and `*.yml` have the keys of the settings file that
 * declare names, `*.hosts` and `hosts` are in the format of /etc/hosts. Hidden files and those that editors leave are
 * ignored. A bad file does not spoil the others.
 */
import { join } from "node:path";

import type { DeclaredName } from "../../base/model/declared-name.ts";
import { BadSettings } from "../../config/bad-settings.ts";
import { readAs, readYaml } from "../../config/file/document.ts";
import { listFolder, readOwnText } from "../../config/file/files.ts";
import { VERSION } from "../../config/file/settings-file.ts";
import { byName, mapOf, quoteValue } from "../../config/kinds.ts";
import { ALSO, WRITTEN, declaredNames } from "./file-schema.ts";
import { readHostsText } from "./hosts-text.ts";

export interface RecordsFile {
  readonly path: string;
  /** Undefined if the file has mistakes. */
  readonly names: readonly DeclaredName[] | undefined;
  readonly mistakes: readonly string[];
}

const YAML = /\.ya?ml$/i;
const HOSTS = /(^|\.)hosts$/i;
const IGNORED = /^\.|~$|^#/;

/** The keys of the settings file that declare names. */
const RECORDS_FILE = mapOf({
  version: {
    read: (value) => {
      if (value !== VERSION) throw new Error(`unsupported version ${quoteValue(value)}: use ${VERSION}`);
    },
  },
  records: WRITTEN,
  networks: byName("network", mapOf(ALSO.ofNetworks), "{NETWORK: {records: {db.shop.test: 10.0.0.5}}}"),
  ...ALSO.keys,
});

/** All files by name. Throws a Fault if the folder cannot be read. */
export async function readFolder(folder: string): Promise<readonly RecordsFile[]> {
  const names = await listFolder(folder, IGNORED);
  const files: RecordsFile[] = [];
  for (const name of names) files.push(await readRecordsFile(join(folder, name)));
  return files;
}

async function readRecordsFile(path: string): Promise<RecordsFile> {
  try {
    const names = await namesIn(path);
    return { path, names, mistakes: [] };
  } catch (error) {
    if (error instanceof BadSettings) return { path, names: undefined, mistakes: error.lines };
    throw error;
  }
}

async function namesIn(path: string): Promise<readonly DeclaredName[]> {
  if (!YAML.test(path) && !HOSTS.test(path)) {
    throw new BadSettings([`${path}: unknown format: use a name that ends in .yaml, .yml or .hosts`]);
  }
  const text = await readOwnText(path);
  return YAML.test(path) ? namesInYaml(text, path) : namesInHosts(text, path);
}

function namesInHosts(text: string, path: string): readonly DeclaredName[] {
  const { names, mistakes } = readHostsText(text, path);
  BadSettings.throwAny(mistakes);
  return names;
}

function namesInYaml(text: string, path: string): readonly DeclaredName[] {
  const document = readYaml(text, path);
  if (document.value === null || document.value === undefined) return [];
  return declaredNames(readAs(RECORDS_FILE, document, path), document, path);
}
