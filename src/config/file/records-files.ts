/**
 * RecordsFiles: reads the files of the records folder: `*.yaml` and `*.yml` have the keys of the settings file that
 * declare names, `*.hosts` and `hosts` are in the format of /etc/hosts. Hidden files and those that editors leave are
 * ignored. A bad file does not spoil the others.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

import { reasonOf } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";
import type { DeclaredName } from "../../base/model/declared-name.ts";
import { BadSettings, MISTAKES_SHOWN_MAX } from "../bad-settings.ts";
import { readHostsText } from "../records/hosts-text.ts";
import { readDocument } from "./document.ts";
import { readBytes, textOf } from "./file-text.ts";
import { declaredNames } from "./records-schema.ts";
import { RECORDS_SCHEMA } from "./schema.ts";
import { badValues, mistakeText } from "./schema-mistakes.ts";

export interface RecordsFile {
  readonly path: string;
  /** Undefined if the file has mistakes. */
  readonly names: readonly DeclaredName[] | undefined;
  readonly mistakes: readonly string[];
}

const YAML = /\.ya?ml$/i;
const HOSTS = /(^|\.)hosts$/i;
const IGNORED = /^\.|~$|^#/;
const OTHERS_MAY_WRITE = 0o002;

/** All files by name. Throws a Fault if the folder cannot be read. */
export async function readRecordsFolder(folder: string): Promise<readonly RecordsFile[]> {
  const names = await listFolder(folder);
  const files: RecordsFile[] = [];
  for (const name of names) files.push(await readRecordsFile(join(folder, name)));
  return files;
}

async function listFolder(folder: string): Promise<string[]> {
  let names;
  try {
    names = (await readdir(folder)).filter((name) => !IGNORED.test(name)).toSorted();
    await refuseForeignWriters(folder);
  } catch (error) {
    throw new BadSettings([`${folder}: cannot be read: ${reasonOf(error)}`]);
  }
  if (names.length <= LIMITS.recordsFiles) return names;
  throw new BadSettings([`${folder}: has ${names.length} files: use at most ${LIMITS.recordsFiles}`]);
}

/** Who can write the file decides what names mean in all containers. */
async function refuseForeignWriters(path: string): Promise<void> {
  const { mode } = await stat(path);
  if ((mode & OTHERS_MAY_WRITE) !== 0) throw new Error(`every user may write it: chmod o-w ${path}`);
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
  await refuseForeignWriters(path).catch((error: unknown) => {
    throw new BadSettings([`${path}: cannot be read: ${reasonOf(error)}`]);
  });
  const text = textOf(await readBytes(path, LIMITS.recordsFileBytes), path);
  return YAML.test(path) ? namesInYaml(text, path) : namesInHosts(text, path);
}

function namesInHosts(text: string, path: string): readonly DeclaredName[] {
  const { names, mistakes } = readHostsText(text, path);
  if (mistakes.length > 0) throw new BadSettings(mistakes.slice(0, MISTAKES_SHOWN_MAX), mistakes.length);
  return names;
}

function namesInYaml(text: string, path: string): readonly DeclaredName[] {
  const document = readDocument(text);
  if (document.mistakes.length > 0) throw new BadSettings(document.mistakes.map((each) => mistakeText(path, each)));
  if (document.value === null || document.value === undefined) return [];
  const result = RECORDS_SCHEMA.safeParse(document.value);
  if (!result.success) throw badValues(result.error.issues, document, path, RECORDS_SCHEMA);
  return declaredNames(result.data, document, path);
}
