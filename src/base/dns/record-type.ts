/** Record types and their names. */
import { nearest } from "../lib/nearest.ts";

export const TYPE = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  NULL: 10,
  PTR: 12,
  HINFO: 13,
  MX: 15,
  TXT: 16,
  RP: 17,
  AFSDB: 18,
  SIG: 24,
  KEY: 25,
  AAAA: 28,
  LOC: 29,
  SRV: 33,
  NAPTR: 35,
  KX: 36,
  CERT: 37,
  DNAME: 39,
  OPT: 41,
  APL: 42,
  DS: 43,
  SSHFP: 44,
  IPSECKEY: 45,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  DHCID: 49,
  NSEC3: 50,
  NSEC3PARAM: 51,
  TLSA: 52,
  SMIMEA: 53,
  HIP: 55,
  CDS: 59,
  CDNSKEY: 60,
  OPENPGPKEY: 61,
  CSYNC: 62,
  ZONEMD: 63,
  SVCB: 64,
  HTTPS: 65,
  SPF: 99,
  TKEY: 249,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
  URI: 256,
  CAA: 257,
  TA: 32768,
  DLV: 32769,
} as const;

const TYPES: Readonly<Record<string, number>> = TYPE;

const NAMES = new Map(Object.entries(TYPES).map(([name, number]) => [number, name]));
const TYPE_MAX = 65535;
/** Types of queries about a server, for a transfer, or for any record. */
const META_FIRST = 128;
const META_LAST = 255;

/** Whether no record can have this type, so that it cannot be cached or followed. */
export function isMetaType(type: number): boolean {
  return type >= META_FIRST && type <= META_LAST;
}

/** Parses a type's name, or TYPE and its number (RFC 3597); throws an Error with a sentence for users. */
export function parseType(text: string): number {
  const word = text.toUpperCase();
  const known = Object.hasOwn(TYPES, word) ? TYPES[word] : undefined;
  if (known !== undefined) return known;
  const number = /^TYPE(\d{1,5})$/.exec(word)?.[1];
  // Type 0 is reserved, but a program may ask for it: a query without a type is one.
  if (number !== undefined && Number(number) <= TYPE_MAX) return Number(number);
  const suggestion = nearest(word, Object.keys(TYPES));
  throw new Error(
    `unknown record type "${text}": ${suggestion === undefined ? "" : `did you mean ${suggestion}? `}` +
      `use a name such as AAAA, or TYPE0 to TYPE${TYPE_MAX}`,
  );
}

export function typeName(type: number): string {
  return NAMES.get(type) ?? `TYPE${type}`;
}
