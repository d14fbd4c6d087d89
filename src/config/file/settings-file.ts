/**
 * SettingsFile: reads a settings file into a layer. All mistakes are reported at once, each with file, line and column. The
 * module is loaded only if there is a settings file, because the parser of YAML takes memory.
 */
import { BadSettings } from "../bad-settings.ts";
import { type Kind, type Read, byName, mapOf } from "../kinds.ts";
import type { AnySetting } from "../setting.ts";
import type { SettingsLayer, LayerValues } from "../layers.ts";
import { FEATURE_MAPS, SETTINGS } from "../keys.ts";
import { type Document, keyPlace, readAs, readYaml } from "./document.ts";
import { readBytes, textOf } from "./files.ts";

export const VERSION = 1;

/** Far more than a file written by hand needs. */
const BYTES_MAX = 1024 * 1024;

/** The settings without a dot in their key, and a map for each word before a dot. */
function kindsOfSettings(): Record<string, Kind<unknown>> {
  const kinds: Record<string, Kind<unknown>> = {};
  const maps = new Map<string, Record<string, Kind<unknown>>>();
  for (const [key, { kind }] of Object.entries<AnySetting>(SETTINGS)) {
    const [first = "", second] = key.split(".");
    if (second === undefined) kinds[key] = kind;
    else maps.set(first, { ...maps.get(first), [second]: kind });
  }
  for (const [name, ofMap] of maps) kinds[name] = mapOf(ofMap);
  return kinds;
}

/** How the maps of features are read, by their keys. */
const MAP_FILES = await Promise.all(
  Object.entries(FEATURE_MAPS).map(async ([key, { file }]) => [key, await file()] as const),
);

/** More keys of each network, and of the file. */
const OF_NETWORKS: Readonly<Record<string, Kind<unknown>>> = Object.assign(
  {},
  ...MAP_FILES.map(([, { ALSO }]) => ALSO?.ofNetworks),
);
const OF_FEATURES: Readonly<Record<string, Kind<unknown>>> = Object.assign(
  {},
  ...MAP_FILES.map(([key, { ALSO, WRITTEN }]) => ({ ...ALSO?.keys, [key]: WRITTEN })),
);

const NETWORK = mapOf({ dns: SETTINGS.dns.kind, ...OF_NETWORKS });

const FILE = mapOf({
  // Checked before.
  version: { read: (value) => value },
  ...kindsOfSettings(),
  networks: byName("network", NETWORK, "{NETWORK: {dns: [10.0.0.53]}}"),
  ...OF_FEATURES,
});

/** Throws a Fault that lists every mistake. */
export async function readSettingsFile(path: string): Promise<SettingsLayer> {
  return readSettings(await readBytes(path, BYTES_MAX), path);
}

/** Reads the content of a file; `path` is for the error messages. */
export function readSettings(bytes: Uint8Array, path: string): SettingsLayer {
  const document = readYaml(textOf(bytes, path), path);
  const problem = versionProblem(document, path);
  if (problem !== undefined) throw new BadSettings([problem]);
  const values = layerFrom(readAs(FILE, document, path), document, path);
  return { source: "file", values, where: (key) => keyPlace(document, path, key.split(".")) };
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
function layerFrom(read: Read<typeof FILE>, document: Document, path: string): LayerValues {
  const { networks } = read;
  const file: Readonly<Record<string, unknown>> = read;
  const plain = Object.keys(SETTINGS).flatMap((key) => {
    const [first = "", second] = key.split(".");
    const found =
      second === undefined ? file[first] : (file[first] as Readonly<Record<string, unknown>> | undefined)?.[second];
    return found === undefined ? [] : [[key, found] as const];
  });
  const ofFeatures = MAP_FILES.flatMap(([key, each]) => {
    if (file[key] === undefined && each.ALSO === undefined) return [];
    const value = each.place(file[key], document, path, file);
    return value === undefined ? [] : [[key, value] as const];
  });
  return {
    ...(Object.fromEntries(plain) as LayerValues),
    ...Object.fromEntries(ofFeatures),
    ...(networks && { networks: new Map(Object.entries(networks).map(([name, { dns }]) => [name, dns ?? []])) }),
  };
}
