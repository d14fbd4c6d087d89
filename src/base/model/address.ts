/**
 * IP addresses as text and as bytes, and their reverse DNS names.
 */
import { SocketAddress, isIPv4, isIPv6 } from "node:net";

/** Interface names that the kernel allows, without terminal control characters. */
const ZONE = /^[!-~]{1,15}$/;

/** The four or sixteen bytes of an address; undefined for other texts. A zone (`%eth0`) is not part of the bytes. */
export function addressBytes(text: string): Uint8Array | undefined {
  if (isIPv4(text)) return new Uint8Array(text.split(".").map(Number));
  const [bare = "", zone] = text.split(/%(.*)/s, 2);
  return isIPv6(bare) && (zone === undefined || ZONE.test(zone)) ? ipv6Bytes(bare) : undefined;
}

function ipv6Bytes(text: string): Uint8Array {
  const [head = "", tail] = text.split("::", 2);
  const front = groups(head);
  const back = tail === undefined ? [] : groups(tail);
  const words = [...front, ...Array.from({ length: 8 - front.length - back.length }, () => 0), ...back];
  return new Uint8Array(words.flatMap((word) => [word >> 8, word & 0xff]));
}

function groups(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (!group.includes(".")) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split(".").map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}

/** The canonical text of the four or sixteen bytes of an address. */
export function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  const address = Buffer.from(bytes).toString("hex").match(/..../g)?.join(":") ?? "";
  return new SocketAddress({ address, family: "ipv6" }).address;
}

/** An address as a key of tables: a number for IPv4, its bytes as text for IPv6. */
export type AddressKey = number | string;

export function addressKey(bytes: Uint8Array): AddressKey {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  return bytes.length === 4 ? buffer.readUInt32BE(0) : buffer.toString("latin1");
}

/** The wire labels of an address below in-addr.arpa or ip6.arpa, without a terminating zero. */
export function reverseLabels(address: Uint8Array): Uint8Array {
  const labels =
    address.length === 4
      ? [...address].toReversed().map(String)
      : [...address].toReversed().flatMap((byte) => [(byte & 15).toString(16), (byte >> 4).toString(16)]);
  return Buffer.concat(labels.map((label) => Buffer.from(String.fromCharCode(label.length) + label, "latin1")));
}

/**
 * Whether the shortest text of an IPv6 address begins or ends with "::". Docker files those under a wrong reverse name.
 */
export function isOpenEnded(text: string): boolean {
  return text.startsWith("::") || text.endsWith("::");
}

const IPV4_IN_IPV6 = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff);

/** Whether two texts are the same address, including IPv4-mapped IPv6 addresses. */
export function isSameAddress(a: string, b: string): boolean {
  // IPv4 addresses have one text each.
  if (isIPv4(a) && isIPv4(b)) return a === b;
  const [one, other] = [unmappedBytesOf(a), unmappedBytesOf(b)];
  return one !== undefined && other !== undefined && Buffer.compare(one, other) === 0;
}

/** The bytes of an address, of an IPv4-mapped IPv6 address those of the IPv4 address. */
export function unmappedBytesOf(text: string): Uint8Array | undefined {
  const bytes = addressBytes(text);
  return bytes && unmapped(bytes);
}

export function unmapped(bytes: Uint8Array): Uint8Array {
  const isMapped = bytes.length === 16 && IPV4_IN_IPV6.every((byte, index) => bytes[index] === byte);
  return isMapped ? bytes.subarray(12) : bytes;
}

export function isLoopback(text: string): boolean {
  const bytes = addressBytes(text);
  return bytes?.length === 4 ? bytes[0] === 127 : isSameAddress(text, "::1");
}

/** Cloud metadata services outside the link-local ranges: Alibaba's, Oracle's, Amazon's by IPv6. */
const METADATA = ["100.100.100.200", "192.0.0.192", "fd00:ec2::254"];
/** The NAT64 prefix, which holds an IPv4 address. Mapped addresses are handled by `unmappedBytesOf`. */
const TRANSLATED = Uint8Array.of(0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0);

/**
 * Whether an address means something different on each host, or no single host: loopback, unspecified, link-local,
 * multicast and broadcast, and cloud metadata services.
 */
export function isHostScoped(text: string): boolean {
  const bytes = unmappedBytesOf(text);
  if (bytes === undefined || METADATA.some((each) => isSameAddress(each, text))) return true;
  if (bytes.length === 4) return isIpv4OfOneHost(bytes);
  const [first = 0, second = 0] = bytes;
  if (TRANSLATED.every((byte, index) => bytes[index] === byte)) return isIpv4OfOneHost(bytes.subarray(12));
  const isLow = bytes.subarray(0, 12).every((byte) => byte === 0);
  return isLow || first === 0xff || (first === 0xfe && (second & 0xc0) === 0x80);
}

function isIpv4OfOneHost([first = 0, second = 0]: Uint8Array): boolean {
  return first === 0 || first === 127 || first >= 224 || (first === 169 && second === 254);
}

const AF_INET = 2;
const AF_INET6 = 10;

/** A sockaddr_in or sockaddr_in6. */
export function socketAddress(address: Uint8Array, port: number, scope = 0): Buffer {
  const bytes = Buffer.alloc(address.length === 4 ? 16 : 28);
  bytes.writeUInt16LE(address.length === 4 ? AF_INET : AF_INET6, 0);
  bytes.writeUInt16BE(port, 2);
  bytes.set(address, address.length === 4 ? 4 : 8);
  if (address.length === 16) bytes.writeUInt32LE(scope, 24);
  return bytes;
}

/**
 * An address, or all addresses that begin with the same bits. An IPv4 address that is mapped into IPv6 is that
 * IPv4 address.
 */
export interface AddressBlock {
  /** Four or sixteen bytes, zero after the prefix. */
  readonly bytes: Uint8Array;
  readonly prefix: number;
}

/** Undefined for a text that is no address; throws an Error that says what to use for one that is nearly a block. */
export function readAddressBlock(text: string): AddressBlock | undefined {
  const [address = "", prefixText, ...more] = text.split("/");
  const bytes = address.includes("%") || addressBytes(address) === undefined ? undefined : unmappedBytesOf(address);
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

/** Whether an address is in a block. `address` has 4 or 16 bytes; a mapped IPv4 address is passed as its 4 bytes. */
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
