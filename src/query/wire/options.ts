/**
 * Validates EDNS options. As in Docker's library, an invalid option of a known code makes the whole message malformed;
 * all other codes are opaque.
 */
import { u16 } from "../../base/dns/bytes.ts";
import { OPTION, OPTION_FIXED_BYTES } from "../../base/dns/opt.ts";
import { skipName } from "./name.ts";

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
