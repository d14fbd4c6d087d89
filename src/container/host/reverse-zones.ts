/**
 * ReverseZones: the reverse DNS zones of subnets. A subnet that ends within an octet is several zones;
 * one that would be very many is a zone that is larger than it. IPv6 zones end at a multiple of four bits.
 */
import { wireLabels } from "../../base/dns/name.ts";
import { addressBytes } from "../../base/model/address.ts";
import type { Subnet } from "./host-subnets.ts";
import { HOST_LIMITS } from "./limits.ts";

const OCTET_BITS = 8;
const OCTETS_MAX = 3;
const NIBBLE_BITS = 4;

/** Their names, without duplicates, at most the limit. */
export function reverseZoneNames(subnets: Iterable<Subnet>): string[] {
  const names = new Set<string>();
  for (const subnet of subnets) for (const name of zonesOf(subnet)) names.add(name);
  return [...names].slice(0, HOST_LIMITS.reverseZones);
}

/** The same as wire names, each with its final zero byte. */
export function reverseZones(subnets: Iterable<Subnet>): Uint8Array[] {
  return reverseZoneNames(subnets).map(wireName);
}

/** The name as a query carries it. */
export function wireName(name: string): Uint8Array {
  return Buffer.concat([wireLabels(name) as Uint8Array, Buffer.of(0)]);
}

function zonesOf({ address, prefixLength }: Subnet): string[] {
  const bytes = addressBytes(address);
  if (bytes === undefined) return [];
  if (bytes.length === 4) return ipv4Zones(bytes, prefixLength);
  const digits = [...Buffer.from(bytes).toString("hex")].slice(0, Math.floor(prefixLength / NIBBLE_BITS));
  return [`${digits.toReversed().join(".")}.ip6.arpa`];
}

function ipv4Zones(bytes: Uint8Array, prefixLength: number): string[] {
  const exact = Math.min(OCTETS_MAX, Math.ceil(prefixLength / OCTET_BITS));
  const bits = exact * OCTET_BITS - prefixLength;
  // A prefix longer than 24 bits is within one zone of 24.
  const isSplit = bits > 0 && 2 ** bits <= HOST_LIMITS.zonesOfSubnet;
  const octets = bits <= 0 || isSplit ? exact : exact - 1;
  const fixed = [...bytes.subarray(0, octets)];
  const last = octets - 1;
  if (octets === 0) return [];
  const count = isSplit ? 2 ** bits : 1;
  const base = isSplit ? (fixed[last] as number) & ~(count - 1) : (fixed[last] as number);
  return Array.from({ length: count }, (_, index) => {
    const octetsOfZone = fixed.with(last, base + index);
    return `${octetsOfZone.toReversed().join(".")}.in-addr.arpa`;
  });
}
