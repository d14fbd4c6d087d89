/**
 * PrivateAddress: which addresses are not those of public servers: private, loopback, link-local, shared by carriers, multicast and
 * reserved ones, the services of clouds for their machines, and IPv6 addresses that stand for such an IPv4 address. An allowed name that
 * leads there would reach what the policy never meant.
 */
import { type AddressBlock, isInBlock, readAddressBlock } from "../../base/model/address-block.ts";

const BLOCKS: readonly AddressBlock[] = [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"],
  // Oracle's metadata service is among the protocol assignments. In Azure one public address is the machine's own agent.
  ...["168.63.129.16/32", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"],
  // Unspecified, loopback and IPv4-compatible; IPv4-translated; discard-only; local NAT64; Teredo.
  ...["::/96", "::ffff:0:0:0/96", "100::/64", "64:ff9b:1::/48", "2001::/32"],
  ...["fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"],
].map(block);

/** Addresses of these hold an IPv4 address, at that offset. */
const TRANSLATED: readonly { readonly block: AddressBlock; readonly at: number }[] = [
  { block: block("64:ff9b::/96"), at: 12 },
  { block: block("2002::/16"), at: 2 },
];

const LOOPBACK: readonly AddressBlock[] = ["127.0.0.0/8", "::1/128"].map(block);

export function isLoopback(address: Uint8Array): boolean {
  return LOOPBACK.some((each) => isInBlock(address, each));
}

/** `address` has four or sixteen bytes, those of the IPv4 address where one is mapped. */
export function isPrivate(address: Uint8Array): boolean {
  if (BLOCKS.some((each) => isInBlock(address, each))) return true;
  const inner = embedded(address);
  return inner !== undefined && isPrivate(inner);
}

/** The IPv4 address that a translated address leads to. */
export function embedded(address: Uint8Array): Uint8Array | undefined {
  const found = TRANSLATED.find(({ block: prefix }) => isInBlock(address, prefix));
  return found === undefined ? undefined : address.subarray(found.at, found.at + 4);
}

function block(text: string): AddressBlock {
  return readAddressBlock(text) as AddressBlock;
}
