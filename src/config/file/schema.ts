/**
 * Schema: the keys of a settings file and their values.
 */
import * as z from "zod";

import type { RouteText } from "../../base/model/server-text.ts";
import { nearest } from "../../base/lib/nearest.ts";
import { whyNoSetting } from "../not-settings.ts";
import type { AnySetting } from "../setting.ts";
import { FEATURE_MAPS, SETTINGS } from "../settings-table.ts";
import type { Document } from "./document.ts";
import { POLICIES, type WrittenPolicy } from "./policies-schema.ts";
import { RECORDS, type WrittenRecords } from "./records-schema.ts";
import { KEYS_LISTED_MAX, byName, leaf, list, map, oneOrMore } from "./schema-parts.ts";

export const VERSION = 1;

const PROJECTS_EXAMPLE = "{PROJECT: {records: {db.shop.test: 10.0.0.5}}}";

const servers = list((value) => SETTINGS.dns.kind.read(value));

/** By its form: a value, or a list of values. */
function valueOf({ kind, form }: AnySetting): z.ZodType {
  const read = (value: unknown): unknown => kind.read(value);
  if (form === "one") return leaf(read).optional();
  return form === "list" ? list(read) : oneOrMore(read);
}

/** The settings without a dot in their key, and a map for each word before a dot. */
function shapeOfSettings(): Record<string, z.ZodType> {
  const shape: Record<string, z.ZodType> = {};
  const maps = new Map<string, Record<string, z.ZodType>>();
  for (const [key, setting] of Object.entries<AnySetting>(SETTINGS)) {
    const value = valueOf(setting);
    const [first = "", second] = key.split(".");
    if (second === undefined) shape[key] = value;
    else maps.set(first, { ...maps.get(first), [second]: value });
  }
  for (const [name, values] of maps) shape[name] = map(values).optional();
  return shape;
}

/** How the maps of features are read, by their keys. */
const MAP_FILES = await Promise.all(
  Object.entries(FEATURE_MAPS).map(async ([key, { file }]) => [key, await file()] as const),
);

export const SCHEMA = map({
  version: z.literal(VERSION),
  ...shapeOfSettings(),
  networks: byName("network", map({ dns: servers, records: RECORDS }), "{NETWORK: {dns: [10.0.0.53]}}"),
  projects: byName("project", map({ records: RECORDS }), PROJECTS_EXAMPLE),
  records: RECORDS,
  policies: POLICIES,
  ...Object.fromEntries(MAP_FILES.map(([key, { SCHEMA: schema }]) => [key, schema])),
});

/** A file of the records folder: the keys of the settings file that declare names. */
export const RECORDS_SCHEMA = map({
  version: z.literal(VERSION).optional(),
  records: RECORDS,
  networks: byName("network", map({ records: RECORDS }), "{NETWORK: {records: {db.shop.test: 10.0.0.5}}}"),
  projects: byName("project", map({ records: RECORDS }), PROJECTS_EXAMPLE),
});

/** What a file has: the maps, and whatever else the settings declare. */
export interface FileSettings extends Readonly<Record<string, unknown>> {
  readonly networks?: Readonly<
    Record<string, { readonly dns?: readonly RouteText[]; readonly records?: WrittenRecords }>
  >;
  readonly projects?: Readonly<Record<string, { readonly records?: WrittenRecords }>>;
  readonly records?: WrittenRecords;
  readonly policies?: Readonly<Record<string, WrittenPolicy>>;
}

/** The values of features' maps in a file. Throws a Fault that lists what the schema cannot see. */
export function featureMapsOf(file: FileSettings, document: Document, path: string): Readonly<Record<string, unknown>> {
  const inFile = MAP_FILES.filter(([key]) => file[key] !== undefined);
  return Object.fromEntries(inFile.map(([key, each]) => [key, each.place(file[key], document, path)]));
}

/** The keys that the map at this path may have; undefined if it may have any. */
function keysAt(root: z.ZodType, path: readonly PropertyKey[]): readonly string[] | undefined {
  let schema: unknown = root;
  for (const step of path) {
    schema = unwrapped(schema);
    if (schema instanceof z.ZodObject) schema = (schema.shape as Record<PropertyKey, unknown>)[step];
    else if (schema instanceof z.ZodRecord) schema = schema.valueType;
    else return undefined;
  }
  const found = unwrapped(schema);
  return found instanceof z.ZodObject ? Object.keys(found.shape) : undefined;
}

function unwrapped(schema: unknown): unknown {
  return schema instanceof z.ZodOptional ? schema.unwrap() : schema;
}

/** The error for an unknown key. */
export function unknownKey(key: string, path: readonly PropertyKey[], root: z.ZodType = SCHEMA): string {
  const why = whyNoSetting(key);
  if (why !== undefined) return `is not supported: ${why}`;
  const keys = keysAt(root, path) ?? [];
  const suggestion = nearest(key, keys);
  if (suggestion !== undefined) return `unknown key; did you mean "${suggestion}"?`;
  return keys.length > KEYS_LISTED_MAX
    ? "unknown key; dns11 man dns11.yaml prints all keys"
    : `unknown key; use one of ${keys.join(", ")}`;
}
