/**
 * StoredRecord: one record of etcd, in the schema of SkyDNS as CoreDNS reads it: a JSON object that may be an address or
 * a CNAME, a service, a text and a mail server at once. What cannot be a record is refused with a reason.
 */
import { wireLabels } from "../../../base/dns/name.ts";
import { jsonObject } from "../source/json-object.ts";
import { LIMITS } from "../../../base/limits.ts";
import { plain } from "../../../base/model/address.ts";

export interface StoredRecord {
  /** Its host is one of them or none: an address, or wire labels with the terminating zero. */
  readonly address: Uint8Array | undefined;
  readonly target: Uint8Array | undefined;
  /** -1: it is no service. */
  readonly port: number;
  readonly priority: number;
  /** 0: none was given. */
  readonly weight: number;
  readonly text: string;
  readonly isMail: boolean;
  /** 0: none was given. */
  readonly ttlSeconds: number;
  /** How many labels in front a target loses. */
  readonly strip: number;
  readonly group: string;
  /** The machine of the dns11 that has published it. */
  readonly machine: string;
}

const DEFAULT_PRIORITY = 10;
const U16_MAX = 65_535;
const TTL_MAX = 2_147_483_647;
const LABELS_MAX = 127;
const TEXT_BYTES_MAX = 4096;
const GROUP_CHARS_MAX = 255;

/** Throws an Error with the reason. */
export function readRecord(value: Buffer | undefined): StoredRecord {
  if (value === undefined || value.length > LIMITS.etcdValueBytes) {
    throw new Error(`the value has more than ${LIMITS.etcdValueBytes} bytes`);
  }
  const fields = readFields(value);
  const host = stringIn(fields, "host", LIMITS.etcdValueBytes);
  const text = stringIn(fields, "text", TEXT_BYTES_MAX);
  if (host === "" && text === "") throw new Error("it has neither a host nor a text");
  const address = host.includes("%") ? undefined : plain(host);
  const isName = host !== "" && address === undefined;
  return {
    address,
    target: isName ? targetOf(host) : undefined,
    port: numberIn(fields, "port", -1, U16_MAX),
    priority: numberIn(fields, "priority", 0, U16_MAX) || DEFAULT_PRIORITY,
    weight: numberIn(fields, "weight", 0, U16_MAX),
    text,
    isMail: booleanIn(fields, "mail"),
    ttlSeconds: numberIn(fields, "ttl", 0, TTL_MAX),
    strip: numberIn(fields, "targetstrip", 0, LABELS_MAX),
    group: stringIn(fields, "group", GROUP_CHARS_MAX),
    machine: stringIn(fields, "machine", GROUP_CHARS_MAX),
  };
}

type Fields = ReadonlyMap<string, unknown>;

function readFields(value: Buffer): Fields {
  // The programs that wrote these records ignore the letter case of fields.
  return new Map(Object.entries(jsonObject(value)).map(([key, field]) => [key.toLowerCase(), field]));
}

function stringIn(fields: Fields, key: string, bytesMax: number): string {
  const field = fields.get(key) ?? "";
  if (typeof field !== "string") throw new Error(`its ${key} is not a string`);
  if (Buffer.byteLength(field) > bytesMax) throw new Error(`its ${key} has more than ${bytesMax} bytes`);
  return field;
}

function numberIn(fields: Fields, key: string, min: number, max: number): number {
  const field = fields.get(key) ?? 0;
  if (typeof field === "number" && Number.isInteger(field) && field >= min && field <= max) return field;
  throw new Error(`its ${key} is not a whole number from ${min} to ${max}`);
}

function booleanIn(fields: Fields, key: string): boolean {
  const field = fields.get(key) ?? false;
  if (typeof field !== "boolean") throw new Error(`its ${key} is neither true nor false`);
  return field;
}

function targetOf(host: string): Uint8Array {
  const labels = wireLabels(host.replace(/\.$/, ""));
  if (labels === undefined || /[*:%/]/.test(host)) throw new Error("its host is neither an address nor a domain name");
  return Uint8Array.of(...labels, 0);
}
