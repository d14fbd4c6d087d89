/**
 * OPT, the record that carries EDNS (RFC 6891). Its fixed part means something else than other records': the class is the
 * size of a UDP message that the sender takes, the TTL holds further bits of the response code, a version and flags.
 */
import { TYPE } from "./record-type.ts";

/** Without options: the root as its owner, and the fixed part. */
export const OPT_BYTES = 11;
/** Behind its owner. */
export const OPT_SIZE_AT = 2;
export const OPT_RCODE_AT = 4;
export const OPT_VERSION_AT = 5;
export const OPT_FLAGS_AT = 6;
/** In the octet at OPT_FLAGS_AT: whoever asks wants records of DNSSEC. */
export const DO = 0x80;
/** How far the OPT's part of a response code is shifted. */
export const OPT_RCODE_SHIFT = 4;
/** Of an option: code and length. */
export const OPTION_FIXED_BYTES = 4;

/** Options by their codes, as IANA has them. */
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
} as const;

/** What dns11 tells others to send it at most by UDP: fits every path without fragments. */
export const OUR_UDP_BYTES = 1232;

/** Writes ours, with room for so many bytes of options behind it; the offset behind its fixed part. */
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
