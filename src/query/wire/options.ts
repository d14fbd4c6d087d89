/**
 * EDNS options: those that are known have a shape, and one that is out of shape makes the whole message malformed, as
 * Docker's library has it. All others are opaque.
 */
import { skipName } from "./name.ts";

export function areOptionsSane(bytes: Uint8Array, at: number, end: number): boolean {
  let cursor = at;
  while (cursor < end) {
    if (cursor + 4 > end) return false;
    const data = cursor + 4;
    const dataEnd = data + u16(bytes, cursor + 2);
    if (dataEnd > end || !isOptionSane(u16(bytes, cursor), bytes, data, dataEnd)) return false;
    cursor = dataEnd;
  }
  return true;
}

function isOptionSane(code: number, bytes: Uint8Array, at: number, end: number): boolean {
  const length = end - at;
  switch (code) {
    case 1: // long-lived query
      return length >= 18;
    case 2: // update lease
      return length === 4 || length === 8;
    case 8: // client subnet
      return isSubnetSane(bytes, at, length);
    case 9: // expire
      return length === 0 || length >= 4;
    case 11: // TCP keepalive
      return length === 0 || length === 2;
    case 15: // extended error
      return length >= 2;
    case 18: // where to report errors to
      return skipName(bytes, at, at, end) !== -1;
    default:
      return true;
  }
}

function isSubnetSane(bytes: Uint8Array, at: number, length: number): boolean {
  if (length < 4) return false;
  const family = u16(bytes, at);
  const sourceBits = bytes[at + 2] as number;
  const scopeBits = bytes[at + 3] as number;
  if (family === 0) return sourceBits === 0;
  const bitsMax = family === 1 ? 32 : family === 2 ? 128 : -1;
  return sourceBits <= bitsMax && scopeBits <= bitsMax;
}

function u16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
}
