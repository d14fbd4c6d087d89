/**
 * OPT, the record that carries EDNS (RFC 6891). Its fixed fields differ from those of other records: the class is the
 * sender's UDP payload size; the TTL holds the extended response code, a version and flags.
 */
import { TYPE } from "./record-type.ts";

/** The size of an OPT without options: the root name and the fixed fields. */
export const OPT_BYTES = 11;
/** Offsets after the owner name. */
export const OPT_SIZE_AT = 2;
export const OPT_RCODE_AT = 4;
export const OPT_VERSION_AT = 5;
export const OPT_FLAGS_AT = 6;
/** This bit of the byte at OPT_FLAGS_AT says that the client wants DNSSEC records. */
export const DO = 0x80;
/** How far the OPT's part of a response code is shifted. */
export const OPT_RCODE_SHIFT = 4;
/** An option has a code and a length before its data. */
export const OPTION_FIXED_BYTES = 4;

/** IANA option codes. */
export const OPTION = {
  LLQ: 1,
  UPDATE_LEASE: 2,
  NSID: 3,
  CLIENT_SUBNET: 8,
  EXPIRE: 9,
  COOKIE: 10,
  KEEPALIVE: 11,
  PADDING: 12,
  EXTENDED_ERROR: 15,
  REPORT_CHANNEL: 18,
  ZONE_VERSION: 19,
} as const;

/** The UDP payload size that dns11 announces: fits every path without fragmentation. */
export const OUR_UDP_BYTES = 1232;

/** Writes our OPT, with room for so many bytes of options after it; returns the offset after its fixed fields. */
export function writeOpt(bytes: Uint8Array, at: number, rcode: number, isDnssecOk: boolean, optionBytes = 0): number {
  bytes[at] = 0;
  bytes[at + 1] = 0;
  bytes[at + 2] = TYPE.OPT;
  bytes[at + 3] = OUR_UDP_BYTES >> 8;
  bytes[at + 4] = OUR_UDP_BYTES & 0xff;
  bytes[at + 5] = rcode >> OPT_RCODE_SHIFT;
  bytes[at + 6] = 0;
  bytes[at + 7] = isDnssecOk ? DO : 0;
  bytes[at + 8] = 0;
  bytes[at + 9] = optionBytes >> 8;
  bytes[at + 10] = optionBytes;
  return at + OPT_BYTES;
}
