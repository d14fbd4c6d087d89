/**
 * Validates the service parameters of SVCB and HTTPS: keys in ascending order, and the values of known keys.
 */
import { u16 } from "../../base/dns/bytes.ts";

const RESERVED = 65535;

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
