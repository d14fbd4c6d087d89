/**
 * Numbers as they stand in a DNS message: most significant octet first. On the hot path these replace Buffer's readers,
 * which check what has been checked before.
 */
export function u16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
}

export function u32(bytes: Uint8Array, at: number): number {
  return ((u16(bytes, at) << 16) | u16(bytes, at + 2)) >>> 0;
}

export function setU16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >> 8;
  bytes[at + 1] = value & 0xff;
}

export function setU32(bytes: Uint8Array, at: number, value: number): void {
  setU16(bytes, at, value >>> 16);
  setU16(bytes, at + 2, value & 0xffff);
}
