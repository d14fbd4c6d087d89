/**
 * SettingsFile: reads a settings file into a layer. All mistakes are reported at once, each with file, line and column. The
 * module is loaded only if there is a settings file, because its packages take memory.
 */
import { constants } from "node:fs";
import { open } from "node:fs/promises";

import { reasonOf } from "../../base/lib/fault.ts";
import { BadSettings, MISTAKES_SHOWN_MAX } from "../bad-settings.ts";
import type { SettingsLayer, LayerValues } from "../settings-layer.ts";
import { type Document, type Mistake, type TextPosition, readDocument } from "./document.ts";
import { type FileSettings, SCHEMA, VERSION, unknownKey } from "./schema.ts";

/** Far more than a file written by hand needs. */
const BYTES_MAX = 1024 * 1024;

/** Throws a Fault that lists every mistake. */
export async function readSettingsFile(path: string): Promise<SettingsLayer> {
  return readSettings(await readBytes(path), path);
}

/** Reads the content of a file; `path` is for the error messages. */
export function readSettings(bytes: Uint8Array, path: string): SettingsLayer {
  const document = readDocument(textOf(bytes, path));
  const at = ({ line, column }: TextPosition): string => `${path}:${line}:${column}`;
  const lineOf = (mistake: Mistake): string => `${at(mistake)}: ${mistake.what}`;
  if (document.mistakes.length > 0) throw new BadSettings(document.mistakes.map((each) => lineOf(each)));
  const problem = versionProblem(document, path);
  if (problem !== undefined) throw new BadSettings([problem]);
  const result = SCHEMA.safeParse(document.value);
  if (!result.success) {
    const all = result.error.issues.flatMap((issue) => mistakesOf(issue));
    const placed = locateMistakes(document, all.slice(0, MISTAKES_SHOWN_MAX));
    throw new BadSettings(
      placed.map((each) => lineOf(each)),
      all.length,
    );
  }
  return {
    source: "file",
    values: layerFrom(result.data),
    where: (key) => `${at(document.keyPositionOf(key.split(".")))}: ${key}`,
  };
}

async function readBytes(path: string): Promise<Uint8Array> {
  try {
    // Without O_NONBLOCK, opening a pipe without a writer would block forever.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) throw new Error("it is not a regular file");
    const bytes = Buffer.alloc(BYTES_MAX + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length);
      if (bytesRead === 0) return bytes.subarray(0, length);
      length += bytesRead;
      if (length > BYTES_MAX) throw new Error("it is larger than 1 MB");
    }
  } catch (error) {
    throw new BadSettings([`${path}: cannot be read: ${reasonOf(error)}`]);
  }
}

function textOf(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new BadSettings([`${path}: is not valid UTF-8`]);
  }
}

/** A file of another version may have other keys, so its other mistakes are not reported. */
function versionProblem(document: Document, path: string): string | undefined {
  const { value } = document;
  const hint = `the first line must be "version: ${VERSION}"`;
  if (value === null || value === undefined) return `${path}:1:1: the file is empty: ${hint}`;
  if (typeof value !== "object" || Array.isArray(value))
    return `${path}:1:1: the file is not a map of keys and values: ${hint}`;
  if (!Object.hasOwn(value, "version")) return `${path}:1:1: the version is missing: ${hint}`;
  const { version } = value as { readonly version: unknown };
  if (version === VERSION) return undefined;
  const { line, column } = document.positionOf(["version"]);
  return `${path}:${line}:${column}: version: unsupported version ${JSON.stringify(version)}: use ${VERSION}`;
}

type Issue = NonNullable<ReturnType<typeof SCHEMA.safeParse>["error"]>["issues"][number];

interface SchemaMistake {
  readonly path: readonly PropertyKey[];
  /** The mistake is in the key itself, not in its value. */
  readonly isKey: boolean;
  readonly what: () => string;
}

function mistakesOf(issue: Issue): SchemaMistake[] {
  const { path, message } = issue;
  if (issue.code !== "unrecognized_keys") return [{ path, isKey: false, what: () => message }];
  return issue.keys.map((key) => ({ path: [...path, key], isKey: true, what: () => unknownKey(key, path) }));
}

/** The mistakes with their positions, in the order of the lines. */
function locateMistakes(document: Document, found: readonly SchemaMistake[]): Mistake[] {
  return found
    .map(({ path, isKey, what }) => ({
      ...(isKey ? document.keyPositionOf(path) : document.positionOf(path)),
      what: `${pathText(path)}: ${what()}`,
    }))
    .toSorted((a, b) => a.line - b.line || a.column - b.column);
}

function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`))
    .join("")
    .slice(1);
}

/** Flattens the groups of the file into keys with a dot. */
function layerFrom(file: FileSettings): LayerValues {
  const { version: _, networks, switches, forward, cache, kind, metrics, queries, ...rest } = file;
  const groups = { switches, forward, cache, kind, metrics, queries };
  const grouped = Object.entries(groups).flatMap(([group, values]) =>
    Object.entries(values ?? {}).map(([key, value]) => [`${group}.${key}`, value] as const),
  );
  return {
    ...rest,
    ...(networks && { networks: new Map(Object.entries(networks).map(([name, { dns }]) => [name, dns ?? []])) }),
    ...(Object.fromEntries(grouped) as LayerValues),
  };
}
