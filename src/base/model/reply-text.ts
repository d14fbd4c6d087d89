/**
 * ReplyText: a reply as text, for people. It is not used on the hot path.
 */
import { type Answer, decode } from "dns-packet";

import { u16 } from "../dns/bytes.ts";
import { extendedErrorName } from "../dns/extended-error.ts";
import { HEADER_BYTES, isAuthoritative, isTruncated, rcodeOf } from "../dns/header.ts";
import { OPTION, OPT_RCODE_SHIFT } from "../dns/opt.ts";
import { rcodeName } from "../dns/rcode.ts";
import { typeName } from "../dns/record-type.ts";

export interface RecordText {
  readonly name: string;
  readonly type: string;
  readonly ttl: number;
  readonly data: string;
}

export interface ReplyText {
  readonly rcode: string;
  readonly isTruncated: boolean;
  readonly isAuthoritative: boolean;
  readonly answers: readonly RecordText[];
  readonly authority: readonly RecordText[];
  readonly additional: readonly RecordText[];
  /** Extended errors (RFC 8914), with the server's text. */
  readonly extendedErrors: readonly { readonly code: number; readonly name: string; readonly text: string }[];
  /** There are records that cannot be decoded. */
  readonly isUnreadable: boolean;
}

const TYPE_UNKNOWN = /^UNKNOWN_(\d+)$/;

/** Undefined if it is not a DNS message at all. */
export function replyText(message: Uint8Array): ReplyText | undefined {
  if (message.length < HEADER_BYTES) return undefined;
  const bits = { isTruncated: isTruncated(message), isAuthoritative: isAuthoritative(message) };
  const low = rcodeOf(message);
  try {
    const {
      answers = [],
      authorities = [],
      additionals = [],
    } = decode(Buffer.from(message.buffer, message.byteOffset, message.length));
    const opt = additionals.find((record) => record.type === "OPT") as OptRecord | undefined;
    return {
      rcode: rcodeName(low | ((opt?.extendedRcode ?? 0) << OPT_RCODE_SHIFT)),
      ...bits,
      answers: answers.map(recordText),
      authority: authorities.map(recordText),
      additional: additionals.filter((record) => record !== opt).map(recordText),
      extendedErrors: (opt?.options ?? []).flatMap(extendedErrorIn),
      isUnreadable: false,
    };
  } catch {
    const none = { answers: [], authority: [], additional: [], extendedErrors: [] };
    return { rcode: rcodeName(low), ...bits, ...none, isUnreadable: true };
  }
}

/** An OPT record as the package decodes it; the package's types lack these fields. */
interface OptRecord {
  readonly extendedRcode?: number;
  readonly options?: readonly { readonly code: number; readonly data?: Buffer }[];
}

function extendedErrorIn({ code, data }: { code: number; data?: Buffer }): ReplyText["extendedErrors"] {
  if (code !== OPTION.EXTENDED_ERROR || data === undefined || data.length < 2) return [];
  const error = u16(data, 0);
  return [{ code: error, name: extendedErrorName(error), text: data.toString("utf8", 2).replace(/\0$/, "") }];
}

function recordText(record: Answer): RecordText {
  const { type, name } = record;
  const ttl = "ttl" in record && typeof record.ttl === "number" ? record.ttl : 0;
  const data: unknown = "data" in record ? record.data : undefined;
  const number = TYPE_UNKNOWN.exec(type)?.[1];
  return {
    name: dotted(name),
    type: number === undefined ? type : typeName(Number(number)),
    ttl,
    data: dataText(type, data),
  };
}

/** Data is written as in zone files if that is short and the type is known; otherwise fields by name, and unknown data as bytes. */
function dataText(type: string, data: unknown): string {
  if (Buffer.isBuffer(data) && type !== "TXT") return octets(data);
  if (typeof data === "string") return NAMED.has(type) ? dotted(data) : data;
  if (type === "TXT" || type === "SPF") return [data].flat().map(textOf).join(" ");
  if (typeof data !== "object" || data === null) return "";
  const fields = data as Readonly<Record<string, unknown>>;
  const order = ORDER[type];
  if (order !== undefined) return order.map((key) => fieldText(fields[key], NAME_FIELDS.has(key))).join(" ");
  if (type === "CAA")
    return `${fieldText(fields["flags"], false)} ${fieldText(fields["tag"], false)} ${textOf(fields["value"])}`;
  return Object.entries(fields)
    .map(([key, value]) => `${key}=${fieldText(value, false)}`)
    .join(" ");
}

const NAMED = new Set(["CNAME", "NS", "PTR", "DNAME"]);
const NAME_FIELDS = new Set(["exchange", "target", "mname", "rname", "replacement"]);
const ORDER: Readonly<Record<string, readonly string[]>> = {
  MX: ["preference", "exchange"],
  SRV: ["priority", "weight", "port", "target"],
  SOA: ["mname", "rname", "serial", "refresh", "retry", "expire", "minimum"],
};

function fieldText(value: unknown, isName: boolean): string {
  if (Buffer.isBuffer(value)) return value.toString("hex");
  if (Array.isArray(value)) return value.map((each) => fieldText(each, false)).join(",");
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  return isName ? dotted(text) : text;
}

function textOf(value: unknown): string {
  return JSON.stringify(Buffer.isBuffer(value) ? value.toString("latin1") : String(value));
}

/** Writes unknown data as text (RFC 3597, 5). */
function octets(data: Buffer): string {
  return `\\# ${data.length}${data.length === 0 ? "" : ` ${data.toString("hex")}`}`;
}

function dotted(name: string): string {
  return name.endsWith(".") ? name : `${name}.`;
}
