/**
 * Schema: the keys of a settings file and their values.
 */
import * as z from "zod";

import { nearest } from "../../base/lib/nearest.ts";
import { NO_SEARCH } from "../dns-option.ts";
import { READERS, readBoolean, quoteValue } from "../readers.ts";
import { successorOfKey } from "../retired-names.ts";
import { SWITCHES } from "../switches.ts";
import { RECORDS } from "./records-schema.ts";

export const VERSION = 1;

/** A value that one of the `READERS` validates. */
function leaf<T>(read: (value: unknown) => T): z.ZodType<T> {
  return z.unknown().transform((value, context) => {
    try {
      return read(value);
    } catch (error) {
      context.addIssue({ code: "custom", message: value === null ? EMPTY : (error as Error).message });
      return z.NEVER;
    }
  });
}

/** A longer list hides the mistake. */
const KEYS_LISTED_MAX = 8;
const EMPTY = "has no value: set one, or remove the key to use the default";

function list<T>(read: (value: unknown) => T): z.ZodOptional<z.ZodArray<z.ZodType<T>>> {
  return z
    .array(leaf(read), {
      error: ({ input }) => mistakeOf(read, input) ?? wrongType(`a list, such as ${listExample(input)}`, input),
    })
    .optional();
}

/** What is wrong with a single value, which a list of it would not mend; undefined if nothing is. */
function mistakeOf(read: (value: unknown) => unknown, value: unknown): string | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  try {
    read(value);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** A list, or its only value. */
function oneOrMore<T>(read: (value: unknown) => T): z.ZodOptional<z.ZodType<T[]>> {
  const all = (value: unknown): T[] => (Array.isArray(value) ? value : [value]).map((each) => read(each));
  return leaf(all).optional();
}

function listExample(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? `[${value}]` : "[one, two]";
}

function wrongType(expected: string, value: unknown): string {
  return value === null ? EMPTY : `invalid value ${quoteValue(value)}: use ${expected}`;
}

function map<S extends z.ZodRawShape>(shape: S): z.ZodObject<S, z.core.$strict> {
  const keys = Object.keys(shape);
  const which =
    keys.length > KEYS_LISTED_MAX ? `a map with keys such as ${keys[0]}` : `a map with the keys ${keys.join(", ")}`;
  return z.strictObject(shape, { error: ({ input }) => wrongType(which, input) });
}

/** A map by the names of networks or projects. */
function byName<T extends z.ZodType>(
  what: string,
  value: T,
  example: string,
): z.ZodOptional<z.ZodRecord<z.ZodString, T>> {
  return z
    .record(z.string().min(1), value, {
      error: ({ code, input }) =>
        code === "invalid_key" ? `the ${what} name is empty` : wrongType(`a map, such as ${example}`, input),
    })
    .optional();
}

const PROJECTS_EXAMPLE = "{PROJECT: {records: {db.shop.test: 10.0.0.5}}}";

const servers = list(READERS.dns);

export const SCHEMA = map({
  version: z.literal(VERSION),
  "log-level": leaf(READERS["log-level"]).optional(),
  "log-format": leaf(READERS["log-format"]).optional(),
  metrics: map({
    addr: leaf(READERS["metrics.addr"]).optional(),
    containers: leaf(READERS["metrics.containers"]).optional(),
  }).optional(),
  "lame-duck": leaf(READERS["lame-duck"]).optional(),
  capabilities: leaf(READERS.capabilities).optional(),
  keeper: leaf(READERS.keeper).optional(),
  answers: leaf(READERS.answers).optional(),
  strict: leaf(READERS.strict).optional(),
  "rule-backend": leaf(READERS["rule-backend"]).optional(),
  only: list(READERS.only),
  "trust-image-labels": leaf(readBoolean).optional(),
  "label-servers": leaf(READERS["label-servers"]).optional(),
  health: leaf(READERS.health).optional(),
  stopped: leaf(READERS.stopped).optional(),
  ptr: leaf(READERS.ptr).optional(),
  "address-order": leaf(READERS["address-order"]).optional(),
  visible: leaf(READERS.visible).optional(),
  "default-bridge": leaf(READERS["default-bridge"]).optional(),
  "host-docker-internal": leaf(READERS["host-docker-internal"]).optional(),
  zone: oneOrMore(READERS.zone),
  ttl: leaf(READERS.ttl).optional(),
  dns: servers,
  "dns-opt": list(READERS["dns-opt"]),
  networks: byName("network", map({ dns: servers, records: RECORDS }), "{NETWORK: {dns: [10.0.0.53]}}"),
  projects: byName("project", map({ records: RECORDS }), PROJECTS_EXAMPLE),
  records: RECORDS,
  "records-dir": leaf(READERS["records-dir"]).optional(),
  "resolv-conf": leaf(READERS["resolv-conf"]).optional(),
  "host-names": leaf(READERS["host-names"]).optional(),
  "host-domain": leaf(READERS["host-domain"]).optional(),
  switches: map(Object.fromEntries(SWITCHES.map(({ name }) => [name, leaf(readBoolean).optional()]))).optional(),
  forward: map({
    order: leaf(READERS["forward.order"]).optional(),
    budget: leaf(READERS["forward.budget"]).optional(),
    "max-concurrent": leaf(READERS["forward.max-concurrent"]).optional(),
    "domain-needed": leaf(readBoolean).optional(),
    "bogus-priv": leaf(readBoolean).optional(),
    "missing-container": leaf(READERS["forward.missing-container"]).optional(),
  }).optional(),
  cache: map({
    size: leaf(READERS["cache.size"]).optional(),
    "min-ttl": leaf(READERS["cache.min-ttl"]).optional(),
    "max-ttl": leaf(READERS["cache.max-ttl"]).optional(),
    "max-negative-ttl": leaf(READERS["cache.max-negative-ttl"]).optional(),
    "negative-ttl-without-soa": leaf(READERS["cache.negative-ttl-without-soa"]).optional(),
    "max-stale": leaf(READERS["cache.max-stale"]).optional(),
  }).optional(),
  kind: map({
    nodes: list(READERS["kind.nodes"]),
    ip: leaf(READERS["kind.ip"]).optional(),
    mode: leaf(READERS["kind.mode"]).optional(),
    families: leaf(READERS["kind.families"]).optional(),
    "route-localnet": leaf(READERS["kind.route-localnet"]).optional(),
    expose: leaf(readBoolean).optional(),
    force: leaf(readBoolean).optional(),
    "host-docker-internal": leaf(READERS["kind.host-docker-internal"]).optional(),
  }).optional(),
  etcd: map({
    endpoints: oneOrMore(READERS["etcd.endpoints"]),
    prefix: leaf(READERS["etcd.prefix"]).optional(),
    zones: oneOrMore(READERS["etcd.zones"]),
    ca: leaf(READERS["etcd.ca"]).optional(),
    user: leaf(READERS["etcd.user"]).optional(),
    "password-file": leaf(READERS["etcd.password-file"]).optional(),
    "max-stale": leaf(READERS["etcd.max-stale"]).optional(),
    quirks: oneOrMore(READERS["etcd.quirks"]),
    publish: leaf(readBoolean).optional(),
    machine: leaf(READERS["etcd.machine"]).optional(),
    address: oneOrMore(READERS["etcd.address"]),
    "routed-networks": oneOrMore(READERS["etcd.routed-networks"]),
    lease: leaf(READERS["etcd.lease"]).optional(),
    "nearest-first": leaf(readBoolean).optional(),
  }).optional(),
  queries: map({
    names: leaf(READERS["queries.names"]).optional(),
    log: leaf(readBoolean).optional(),
  }).optional(),
});

/** A file of the records folder: the keys of the settings file that declare names. */
export const RECORDS_SCHEMA = map({
  version: z.literal(VERSION).optional(),
  records: RECORDS,
  networks: byName("network", map({ records: RECORDS }), "{NETWORK: {records: {db.shop.test: 10.0.0.5}}}"),
  projects: byName("project", map({ records: RECORDS }), PROJECTS_EXAMPLE),
});

export type FileSettings = z.infer<typeof SCHEMA>;

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
  if (key === "dns-search") return `is not supported: ${NO_SEARCH}`;
  const successor = successorOfKey([...path, key].join("."));
  if (successor !== undefined) return `is now ${successor}`;
  const keys = keysAt(root, path) ?? [];
  const suggestion = nearest(key, keys);
  if (suggestion !== undefined) return `unknown key; did you mean "${suggestion}"?`;
  return keys.length > KEYS_LISTED_MAX
    ? "unknown key; dns11 man dns11.yaml prints all keys"
    : `unknown key; use one of ${keys.join(", ")}`;
}
