/**
 * NameValue: reads what the settings say about one declared name: an address, a list of addresses, or a map of record
 * types.
 */
import { nearest } from "../../base/lib/nearest.ts";
import { LIMITS } from "../../base/limits.ts";
import type { DeclaredName, DeclaredRecord } from "../../base/model/declared-name.ts";
import { TTL, quoteValue } from "../kinds.ts";
import { RECORD_KINDS, type RecordKey, readAnyAddress, readOwner, readTarget } from "./record-data.ts";

export type NameValue = Pick<DeclaredName, "ttlSeconds" | "records" | "alias" | "containers">;

const KEYS = [...Object.keys(RECORD_KINDS), "cname", "container", "ttl"];
const EXAMPLE = "use an address, a list of addresses, or a map such as {cname: db.shop.test}";

/** Throws an Error that says what to use. */
export function readNameValue(owner: string, value: unknown): NameValue {
  const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
  const read = isMap ? readMap(value as Readonly<Record<string, unknown>>) : addressesOnly(value);
  const { records, alias, containers } = read;
  const count = records.length + containers.length;
  if (count === 0 && alias === undefined) throw new Error(`has no records: ${EXAMPLE}`);
  if (count > LIMITS.declaredRecords) {
    throw new Error(`has ${count} records: use at most ${LIMITS.declaredRecords} for a name`);
  }
  if (alias !== undefined && count > 0) {
    throw new Error("a CNAME cannot stand beside other records of a name: remove it, or the others");
  }
  if (alias !== undefined && readOwner(alias) === owner) throw new Error("its CNAME points to itself: remove it");
  if (containers.length > 0 && records.some(({ type }) => ADDRESS_TYPES.has(type))) {
    throw new Error("has the addresses of a container and others: use one of them");
  }
  const texts = records.map(({ text }) => text);
  const twice = texts.find((text, index) => texts.indexOf(text) !== index);
  if (twice !== undefined) throw new Error(`has the record ${quoteValue(twice)} twice: remove one`);
  return read;
}

const ADDRESS_TYPES = new Set<number>([RECORD_KINDS.a.type, RECORD_KINDS.aaaa.type]);

function addressesOnly(value: unknown): NameValue {
  const records = textsOf(value).map((text): DeclaredRecord => {
    const { type, data } = readAnyAddress(text);
    return { type, data, text: `${data.length === 4 ? "A" : "AAAA"} ${text}` };
  });
  return { ttlSeconds: undefined, records, alias: undefined, containers: [] };
}

function readMap(map: Readonly<Record<string, unknown>>): NameValue {
  const records: DeclaredRecord[] = [];
  for (const [key, value] of Object.entries(map)) {
    if (!KEYS.includes(key)) throw unknownKey(key);
    if (!Object.hasOwn(RECORD_KINDS, key)) continue;
    const { type, read } = RECORD_KINDS[key as RecordKey];
    for (const text of textsOf(value, key)) {
      records.push({ type, data: read(text), text: `${key.toUpperCase()} ${text}` });
    }
  }
  const { cname, container, ttl } = map;
  const [alias, ...more] = cname === undefined ? [] : textsOf(cname, "cname");
  if (more.length > 0) throw new Error("has several CNAMEs: use one");
  if (alias === ".") throw new Error("its CNAME points to the root: use a name");
  if (alias !== undefined) readTarget(alias);
  const containers = container === undefined ? [] : textsOf(container, "container");
  for (const each of containers) if (each === "." || readTarget(each).length === 0) throw new Error("use a name");
  return {
    ttlSeconds: ttl === undefined ? undefined : Math.round(TTL.read(ttl) / 1000),
    records,
    alias: alias?.replace(/\.$/, ""),
    containers: containers.map((each) => each.replace(/\.$/, "")),
  };
}

function unknownKey(key: string): Error {
  const suggestion = nearest(key, KEYS);
  return new Error(
    `unknown record type ${quoteValue(key)}: ${suggestion === undefined ? "" : `did you mean ${suggestion}? `}` +
      `use ${KEYS.join(", ")}`,
  );
}

/** One text or a list of texts. */
function textsOf(value: unknown, key?: string): readonly string[] {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (all.length > 0 && all.every((each) => typeof each === "string")) return all;
  throw new Error(
    key === undefined
      ? `invalid value ${quoteValue(value)}: ${EXAMPLE}`
      : `invalid ${key} ${quoteValue(value)}: use a string or a list of strings`,
  );
}
