/**
 * SettingsFile: reads a settings file into what it says. Whatever is wrong with it is told with file, line and column, and
 * all of it at once. Only who has such a file loads this, because the packages behind it take memory.
 */
import { constants } from "node:fs";
import { open } from "node:fs/promises";

import { reasonOf } from "../../base/lib/fault.ts";
import { BadSettings, MISTAKES_SHOWN_MAX } from "../bad-settings.ts";
import type { SettingsLayer, LayerValues } from "../settings-layer.ts";
import { type Document, type Mistake, type TextPosition, readDocument } from "./document.ts";
import { type FileSettings, SCHEMA, VERSION, unknownKey } from "./schema.ts";

/** Nobody writes more by hand. */
const BYTES_MAX = 1024 * 1024;

/** Throws a Fault that names every mistake. */
export async function readSettingsFile(path: string): Promise<SettingsLayer> {
  return readSettings(await readBytes(path), path);
}

/** Reads what stands in a file; `path` is what mistakes are told with. */
export function readSettings(bytes: Uint8Array, path: string): SettingsLayer {
  const document = readDocument(textOf(bytes, path));
  const at = ({ line, column }: TextPosition): string => `${path}:${line}:${column}`;
  const tell = (mistake: Mistake): string => `${at(mistake)}: ${mistake.what}`;
  if (document.mistakes.length > 0) throw new BadSettings(document.mistakes.map((each) => tell(each)));
  const problem = versionProblem(document, path);
  if (problem !== undefined) throw new BadSettings([problem]);
  const result = SCHEMA.safeParse(document.value);
  if (!result.success) {
    const all = result.error.issues.flatMap((issue) => mistakesOf(issue));
    const placed = locateMistakes(document, all.slice(0, MISTAKES_SHOWN_MAX));
    throw new BadSettings(
      placed.map((each) => tell(each)),
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
    // A pipe that nobody writes to would keep us waiting for ever.
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) throw new Error("it is no regular file");
    const bytes = Buffer.alloc(BYTES_MAX + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length);
      if (bytesRead === 0) return bytes.subarray(0, length);
      length += bytesRead;
      if (length > BYTES_MAX) throw new Error("it is longer than 1 MB");
    }
  } catch (error) {
    throw new BadSettings([`${path}: cannot be read: ${reasonOf(error)}`]);
  }
}

function textOf(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new BadSettings([`${path}: is not written in UTF-8`]);
  }
}

/** A file of another version may have other keys, so nothing else is said of it then. */
function versionProblem(document: Document, path: string): string | undefined {
  const { value } = document;
  const first = `its first line is "version: ${VERSION}"`;
  if (value === null || value === undefined) return `${path}:1:1: is empty: ${first}`;
  if (typeof value !== "object" || Array.isArray(value)) return `${path}:1:1: is no map of keys and values: ${first}`;
  if (!Object.hasOwn(value, "version")) return `${path}:1:1: lacks its version: ${first}`;
  const { version } = value as { readonly version: unknown };
  if (version === VERSION) return undefined;
  const { line, column } = document.positionOf(["version"]);
  return `${path}:${line}:${column}: version: ${JSON.stringify(version)} is not known to this dns11: it is ${VERSION}`;
}

type Issue = NonNullable<ReturnType<typeof SCHEMA.safeParse>["error"]>["issues"][number];

interface SchemaMistake {
  readonly path: readonly PropertyKey[];
  /** The key itself is wrong, not what stands under it. */
  readonly isKey: boolean;
  readonly what: () => string;
}

function mistakesOf(issue: Issue): SchemaMistake[] {
  const { path, message } = issue;
  if (issue.code !== "unrecognized_keys") return [{ path, isKey: false, what: () => message }];
  return issue.keys.map((key) => ({ path: [...path, key], isKey: true, what: () => unknownKey(key, path) }));
}

/** In the order of their lines. */
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

/** The groups of the file become keys with a dot. */
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
