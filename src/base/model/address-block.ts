/**
 * AddressBlock: an address, or all addresses that begin with the same bits. An IPv4 address that is mapped into IPv6 is that
 * IPv4 address.
 */
import { addressBytes, addressText, plain } from "./address.ts";

export interface AddressBlock {
  /** Four or sixteen bytes, zero after the prefix. */
  readonly bytes: Uint8Array;
  readonly prefix: number;
}

/** Undefined for a text that is no address; throws an Error that says what to use for one that is nearly a block. */
export function readAddressBlock(text: string): AddressBlock | undefined {
  const [address = "", prefixText, ...more] = text.split("/");
  const bytes = address.includes("%") || addressBytes(address) === undefined ? undefined : plain(address);
  if (bytes === undefined || more.length > 0) return undefined;
  const bits = bytes.length * 8;
  if (prefixText === undefined) return { bytes, prefix: bits };
  const prefix = /^\d{1,3}$/.test(prefixText) ? Number(prefixText) : bits + 1;
  if (prefix > bits) throw new Error(`invalid prefix length in "${text}": use 0 to ${bits}`);
  const first = masked(bytes, prefix);
  if (Buffer.compare(first, bytes) !== 0)
    throw new Error(`"${text}" has bits beyond its prefix: use ${addressText(first)}/${prefix}`);
  return { bytes, prefix };
}

export function blockText({ bytes, prefix }: AddressBlock): string {
  return prefix === bytes.length * 8 ? addressText(bytes) : `${addressText(bytes)}/${prefix}`;
}

/** The four or sixteen bytes of an address, those of the IPv4 address where one is mapped. */
export function isInBlock(address: Uint8Array, { bytes, prefix }: AddressBlock): boolean {
  if (address.length !== bytes.length) return false;
  const whole = prefix >> 3;
  for (let at = 0; at < whole; at++) if (address[at] !== bytes[at]) return false;
  const rest = prefix & 7;
  const mask = 0xff00 >> rest;
  return rest === 0 || ((address[whole] as number) & mask & 0xff) === bytes[whole];
}

/** Whether all of one block is in another. */
export function isBlockIn(inner: AddressBlock, outer: AddressBlock): boolean {
  return inner.prefix >= outer.prefix && isInBlock(inner.bytes, outer);
}

function masked(bytes: Uint8Array, prefix: number): Uint8Array {
  return bytes.map((byte, index) => {
    const left = Math.max(0, Math.min(8, prefix - index * 8));
    return byte & (0xff00 >> left) & 0xff;
  });
}
