/**
 * RecordsFiles: reads the files of the records folder: `*.yaml` and `*.yml` have the keys of the settings file that
 * declare names, `*.hosts` and `hosts` are in the format of /etc/hosts. Hidden files and those that editors leave are
 * ignored. A bad file does not spoil the others.
 */
import { join } from "node:path";

import { presentation } from "../../base/dns/name.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { withoutComment } from "../../base/lib/text.ts";
import { reverseLabels } from "../../base/model/address.ts";
import { type DeclaredName, type DeclaredRecord, EVERYBODY } from "../../base/model/declared-name.ts";
import { BadSettings } from "../../config/bad-settings.ts";
import { readAs, readYaml } from "../../config/file/document.ts";
import { listFolder, readOwnText } from "../../config/file/files.ts";
import { VERSION } from "../../config/file/settings-file.ts";
import { byName, mapOf, quoteValue } from "../../config/kinds.ts";
import { readAnyAddress, readOwner, readTarget } from "../../config/records/record-data.ts";
import { ALSO, WRITTEN, declaredNames } from "./file-schema.ts";

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

interface HostsResult {
  readonly names: readonly DeclaredName[];
  /** Each with file and line. */
  readonly mistakes: readonly string[];
}

interface Entry {
  readonly where: string;
  readonly records: DeclaredRecord[];
  readonly isDerived?: true;
}

/**
 * Records in the format of /etc/hosts: an address and its names on each line. The first name of an address is also its reverse name, as a
 * program that reads the file itself would find it. `path` is for the places of the names.
 */
export function readHostsText(text: string, path: string): HostsResult {
  const entries = new Map<string, Entry>();
  const mistakes: string[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    const where = `${path}:${index + 1}:1`;
    const words = withoutComment(line).split(/[\s\0]+/);
    const [address, ...names] = words.filter((word) => word !== "");
    if (address === undefined) continue;
    try {
      addLine(entries, address, names, where);
    } catch (error) {
      mistakes.push(`${where}: ${(error as Error).message}`);
    }
  }
  const names = [...entries].map(([name, entry]): DeclaredName => ({
    name,
    ...entry,
    scope: EVERYBODY,
    ttlSeconds: undefined,
    alias: undefined,
    containers: [],
  }));
  return { names, mistakes };
}

function addLine(entries: Map<string, Entry>, address: string, names: readonly string[], where: string): void {
  const { type, data } = addressOf(address);
  const [first] = names;
  if (first === undefined)
    throw new Error(`the address ${quoteValue(address)} has no name: add one, or remove the line`);
  for (const owner of new Set(names.map((name) => readOwner(name)))) {
    const text = `${type === TYPE.A ? "A" : "AAAA"} ${address}`;
    const entry = entries.get(owner) ?? { where, records: [] };
    if (entry.records.every((each) => each.text !== text)) entry.records.push({ type, data, text });
    entries.set(owner, entry);
  }
  const labels = reverseLabels(data);
  const reverse = `${presentation(labels, 0, labels.length)}.${type === TYPE.A ? "in-addr" : "ip6"}.arpa`;
  if (entries.has(reverse) || first.startsWith("*")) return;
  const pointer = { type: TYPE.PTR, data: readTarget(first), text: `PTR ${first}` };
  entries.set(reverse, { where, records: [pointer], isDerived: true });
}

function addressOf(text: string): ReturnType<typeof readAnyAddress> {
  try {
    return readAnyAddress(text);
  } catch {
    throw new Error(`invalid address ${quoteValue(text)}: a line begins with an IP address, and names follow it`);
  }
}
