/**
 * Validates the data of records by type, in the same way as the DNS library of Docker's embedded DNS, because that
 * library treats a message with invalid data as malformed. Data may end early at the end of a field; types that are not
 * listed are opaque. Nothing is allocated.
 */
import { u16 } from "../../base/dns/bytes.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { skipName } from "./name.ts";
import { OPTION, OPTION_FIXED_BYTES } from "../../base/dns/opt.ts";

/**
 * The fields of each type, one letter per field: a digit is that many octets, `G` sixteen, `n` a name, `N` names to the
 * end, `s` a string with a length byte, `t` such strings to the end, `d` and `D` data after a length of one and two
 * octets, `b` a type bitmap, `a` address prefixes, `o` EDNS options, `p` service parameters, `g` a gateway, `h` and `k`
 * the fields in front of the names of HIP, `*` everything to the end. Types without a symbol are known to Docker's
 * library but not used in practice.
 */
const LAYOUTS: ReadonlyMap<number, string> = new Map([
  [TYPE.A, "4"],
  ...sameLayout([TYPE.NS, 3, 4, TYPE.CNAME, 7, 8, 9, TYPE.PTR, 23, TYPE.DNAME], "n"),
  [TYPE.SOA, "nn44444"],
  [TYPE.HINFO, "ss"],
  ...sameLayout([14, TYPE.RP, 58], "nn"),
  ...sameLayout([TYPE.MX, TYPE.AFSDB, 21, TYPE.KX, 107], "2n"),
  ...sameLayout([TYPE.TXT, 56, TYPE.SPF, 258, 261], "t"),
  ...sameLayout([19, 100], "s"),
  [20, "ss"],
  ...sameLayout([TYPE.SIG, TYPE.RRSIG], "2114442n*"),
  ...sameLayout([TYPE.KEY, TYPE.DNSKEY, 57, TYPE.CDNSKEY], "211*"),
  [26, "2nn"],
  [27, "sss"],
  [TYPE.AAAA, "G"],
  [TYPE.LOC, "1111444"],
  ...sameLayout([30, TYPE.NSEC], "nb"),
  [TYPE.SRV, "222n"],
  [TYPE.NAPTR, "22sssn"],
  [TYPE.CERT, "221*"],
  [TYPE.OPT, "o"],
  [TYPE.APL, "a"],
  ...sameLayout([TYPE.DS, TYPE.CDS, TYPE.TA, TYPE.DLV], "211*"),
  [TYPE.SSHFP, "11*"],
  [TYPE.IPSECKEY, "111g*"],
  [TYPE.NSEC3, "112ddb"],
  [TYPE.NSEC3PARAM, "112d"],
  ...sameLayout([TYPE.TLSA, TYPE.SMIMEA], "111*"),
  [TYPE.HIP, "112hkN"],
  [TYPE.CSYNC, "42b"],
  [TYPE.ZONEMD, "411*"],
  ...sameLayout([TYPE.SVCB, TYPE.HTTPS], "2np"),
  ...sameLayout([101, 102], "4"),
  ...sameLayout([104, 106], "28"),
  [105, "24"],
  [108, "6"],
  [109, "8"],
  ...sameLayout([128, TYPE.ANY], ""),
  [TYPE.TKEY, "n4422DD"],
  [TYPE.TSIG, "n62D22D"],
  [TYPE.URI, "22*"],
  [TYPE.CAA, "1s*"],
  [260, "11g"],
]);

const NAME = 0x6e;
const NAMES = 0x4e;
const GATEWAY = 0x67;
const GATEWAY_IS_NAME = 3;
/** Fields that may be empty, so that the data may end before them. */
const OPTIONAL = new Set("tNbaopghk*");

function sameLayout(types: readonly number[], layout: string): (readonly [number, string])[] {
  return types.map((type) => [type, layout]);
}

/**
 * Whether the data from `at` to `end`, in a message that begins at `start`, are valid for their type. Strict validation
 * requires all fields.
 */
export function isDataValid(
  type: number,
  bytes: Uint8Array,
  start: number,
  at: number,
  end: number,
  isStrict = false,
): boolean {
  const layout = LAYOUTS.get(type);
  if (layout === undefined) return true;
  let cursor = at;
  let field = 0;
  for (; field < layout.length && cursor !== end; field++) {
    cursor = skipField(layout.charCodeAt(field), bytes, start, cursor, end, at);
    if (cursor === -1 || cursor > end) return false;
  }
  if (cursor !== end) return false;
  for (; isStrict && field < layout.length; field++) if (!OPTIONAL.has(layout.charAt(field))) return false;
  return true;
}

/** Calls `visit` with the start and end of each name in valid data; returns whether all of them could be read. */
export function eachName(
  type: number,
  bytes: Uint8Array,
  at: number,
  end: number,
  visit: (start: number, end: number) => void,
): boolean {
  const layout = LAYOUTS.get(type) ?? "";
  for (let cursor = at, field = 0; field < layout.length && cursor < end; field++) {
    const code = layout.charCodeAt(field);
    const isGateway = code === GATEWAY && ((bytes[at + 1] as number) & 0x7f) === GATEWAY_IS_NAME;
    const after = skipField(code, bytes, 0, cursor, end, at);
    if (after === -1) return false;
    if (code === NAME || isGateway) visit(cursor, after);
    for (let name = cursor; code === NAMES && name < end;) {
      const next = skipName(bytes, 0, name, end);
      if (next === -1) return false;
      visit(name, next);
      name = next;
    }
    cursor = after;
  }
  return true;
}

/** The offset after a field, or -1. It may exceed `end`. */
function skipField(
  field: number,
  bytes: Uint8Array,
  start: number,
  at: number,
  end: number,
  dataStart: number,
): number {
  switch (field) {
    case 0x47: // G
      return at + 16;
    case 0x6e: // n
      return skipName(bytes, start, at, end);
    case 0x4e: // N
      return skipNames(bytes, start, at, end);
    case 0x73: // s
      return at + 1 + (bytes[at] as number);
    case 0x74: // t
      return skipStrings(bytes, at, end);
    case 0x64: // d
      return at + 1 === end ? end : at + 1 + (bytes[at] as number);
    case 0x44: // D
      return at + 2 >= end ? at + 2 : at + 2 + u16(bytes, at);
    case 0x62: // b
      return skipBitmap(bytes, at, end);
    case 0x61: // a
      return skipPrefixes(bytes, at, end);
    case 0x6f: // o
      return areOptionsValid(bytes, at, end) ? end : -1;
    case 0x70: // p
      return areParametersValid(bytes, at, end) ? end : -1;
    case 0x67: // g
      return skipGateway(bytes[dataStart + 1] as number, bytes, start, at, end);
    case 0x68: // h
      return at + (bytes[dataStart] as number);
    case 0x6b: // k
      return at + u16(bytes, dataStart + 2);
    case 0x2a: // *
      return end;
    default:
      return at + field - 0x30;
  }
}

function skipNames(bytes: Uint8Array, start: number, at: number, end: number): number {
  let cursor = at;
  while (cursor !== -1 && cursor < end) cursor = skipName(bytes, start, cursor, end);
  return cursor;
}

function skipStrings(bytes: Uint8Array, at: number, end: number): number {
  let cursor = at;
  while (cursor < end) cursor += 1 + (bytes[cursor] as number);
  return cursor;
}

/** Blocks of 1 to 32 octets, in ascending order. */
function skipBitmap(bytes: Uint8Array, at: number, end: number): number {
  let cursor = at;
  let before = -1;
  while (cursor < end) {
    const block = bytes[cursor] as number;
    const length = bytes[cursor + 1] as number;
    if (cursor + 2 > end || block <= before || length === 0 || length > 32) return -1;
    before = block;
    cursor += 2 + length;
  }
  return cursor;
}

function skipPrefixes(bytes: Uint8Array, at: number, end: number): number {
  let cursor = at;
  while (cursor < end) {
    if (cursor + 4 > end) return -1;
    const family = u16(bytes, cursor);
    const octets = family === 1 ? 4 : family === 2 ? 16 : -1;
    const length = (bytes[cursor + 3] as number) & 0x7f;
    if ((bytes[cursor + 2] as number) > octets * 8 || length > octets) return -1;
    cursor += 4 + length;
    if (cursor > end || (length > 0 && bytes[cursor - 1] === 0)) return -1;
  }
  return cursor;
}

function skipGateway(type: number, bytes: Uint8Array, start: number, at: number, end: number): number {
  switch (type & 0x7f) {
    case 1:
      return at + 4;
    case 2:
      return at + 16;
    case 3:
      return skipName(bytes, start, at, end);
    default:
      return at;
  }
}

/**
 * Validates EDNS options. As in Docker's library, an invalid option of a known code makes the whole message malformed;
 * all other codes are opaque.
 */
export function areOptionsValid(bytes: Uint8Array, at: number, end: number): boolean {
  let cursor = at;
  while (cursor < end) {
    const data = cursor + OPTION_FIXED_BYTES;
    if (data > end) return false;
    const dataEnd = data + u16(bytes, cursor + 2);
    if (dataEnd > end || !isOptionValid(u16(bytes, cursor), bytes, data, dataEnd)) return false;
    cursor = dataEnd;
  }
  return true;
}

function isOptionValid(code: number, bytes: Uint8Array, at: number, end: number): boolean {
  const length = end - at;
  switch (code) {
    case OPTION.LLQ:
      return length >= 18;
    case OPTION.UPDATE_LEASE:
      return length === 4 || length === 8;
    case OPTION.CLIENT_SUBNET:
      return isSubnetValid(bytes, at, length);
    case OPTION.EXPIRE:
      return length === 0 || length >= 4;
    case OPTION.KEEPALIVE:
      return length === 0 || length === 2;
    case OPTION.EXTENDED_ERROR:
    case OPTION.ZONE_VERSION:
      return length >= 2;
    case OPTION.REPORT_CHANNEL:
      return skipName(bytes, at, at, end) !== -1;
    default:
      return true;
  }
}

function isSubnetValid(bytes: Uint8Array, at: number, length: number): boolean {
  if (length < 4) return false;
  const family = u16(bytes, at);
  const sourceBits = bytes[at + 2] as number;
  const scopeBits = bytes[at + 3] as number;
  if (family === 0) return sourceBits === 0;
  const bitsMax = family === 1 ? 32 : family === 2 ? 128 : -1;
  return sourceBits <= bitsMax && scopeBits <= bitsMax;
}

const RESERVED = 65535;

/** Validates the service parameters of SVCB and HTTPS: keys in ascending order, and the values of known keys. */
export function areParametersValid(bytes: Uint8Array, at: number, end: number): boolean {
  let cursor = at;
  let before = -1;
  while (cursor < end) {
    if (cursor + 4 > end) return false;
    const key = u16(bytes, cursor);
    const value = cursor + 4;
    const valueEnd = value + u16(bytes, cursor + 2);
    if (key <= before || key === RESERVED || valueEnd > end || !isValueValid(key, bytes, value, valueEnd)) return false;
    before = key;
    cursor = valueEnd;
  }
  return true;
}

function isValueValid(key: number, bytes: Uint8Array, at: number, end: number): boolean {
  const length = end - at;
  switch (key) {
    case 0: // mandatory
      return length % 2 === 0;
    case 1: // protocols
      return areProtocolsValid(bytes, at, end);
    case 2: // no default protocol
    case 8: // oblivious HTTP
      return length === 0;
    case 3: // port
      return length === 2;
    case 4: // IPv4 hint
      return length > 0 && length % 4 === 0;
    case 6: // IPv6 hint
      return length > 0 && length % 16 === 0;
    default:
      return true;
  }
}

function areProtocolsValid(bytes: Uint8Array, at: number, end: number): boolean {
  let cursor = at;
  while (cursor < end) cursor += 1 + (bytes[cursor] as number);
  return cursor === end;
}
