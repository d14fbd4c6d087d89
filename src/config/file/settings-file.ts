/**
 * SettingsFile: reads a settings file into a layer. All mistakes are reported at once, each with file, line and column. The
 * module is loaded only if there is a settings file, because its packages take memory.
 */
import { BadSettings, MISTAKES_SHOWN_MAX } from "../bad-settings.ts";
import type { SettingsLayer, LayerValues } from "../settings-layer.ts";
import { SETTINGS } from "../settings-table.ts";
import { DeclaredSet } from "../records/declared-set.ts";
import { type Document, type TextPosition, readDocument } from "./document.ts";
import { readBytes, textOf } from "./file-text.ts";
import { placedPolicies } from "./policies-schema.ts";
import { declaredNames } from "./records-schema.ts";
import { type FileSettings, SCHEMA, VERSION, featureMapsOf } from "./schema.ts";
import { badValues, mistakeText } from "./schema-mistakes.ts";

/** Far more than a file written by hand needs. */
const BYTES_MAX = 1024 * 1024;

/** Throws a Fault that lists every mistake. */
export async function readSettingsFile(path: string): Promise<SettingsLayer> {
  return readSettings(await readBytes(path, BYTES_MAX), path);
}

/** Reads the content of a file; `path` is for the error messages. */
export function readSettings(bytes: Uint8Array, path: string): SettingsLayer {
  const document = readDocument(textOf(bytes, path));
  const at = ({ line, column }: TextPosition): string => `${path}:${line}:${column}`;
  if (document.mistakes.length > 0) throw new BadSettings(document.mistakes.map((each) => mistakeText(path, each)));
  const problem = versionProblem(document, path);
  if (problem !== undefined) throw new BadSettings([problem]);
  const result = SCHEMA.safeParse(document.value);
  if (!result.success) throw badValues(result.error.issues, document, path, SCHEMA);
  const values = layerFrom(result.data as FileSettings, document, path);
  const contradictions = new DeclaredSet().add(values.records ?? []);
  if (contradictions.length > 0) {
    throw new BadSettings(contradictions.slice(0, MISTAKES_SHOWN_MAX), contradictions.length);
  }
  return {
    source: "file",
    values,
    where: (key) => `${at(document.keyPositionOf(key.split(".")))}: ${key}`,
  };
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

/** The values by their keys, with a dot for those in a map. */
function layerFrom(file: FileSettings, document: Document, path: string): LayerValues {
  const { networks, projects, records, policies } = file;
  const declared = declaredNames({ records, networks, projects }, document, path);
  const plain = Object.keys(SETTINGS).flatMap((key) => {
    const [first = "", second] = key.split(".");
    const found =
      second === undefined ? file[first] : (file[first] as Readonly<Record<string, unknown>> | undefined)?.[second];
    return found === undefined ? [] : [[key, found] as const];
  });
  return {
    ...(Object.fromEntries(plain) as LayerValues),
    ...(declared.length > 0 && { records: declared }),
    ...(policies && { policies: placedPolicies(policies, document, path) }),
    ...featureMapsOf(file, document, path),
    ...(networks && { networks: new Map(Object.entries(networks).map(([name, { dns }]) => [name, dns ?? []])) }),
  };
}
