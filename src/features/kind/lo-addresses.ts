/**
 * Lo addresses: the addresses that dns11 adds to a node's lo: one to listen on, which survives changes of the node's networks,
 * and those without a route, so that the node itself can query them. A label in the kernel marks them as ours.
 */
import { isIPv6 } from "node:net";

import { Fault } from "../../base/lib/fault.ts";
import { type InterfaceAddress, type RouteSocket } from "../../kernel/rtnetlink.ts";
import { LOOPBACK_INDEX } from "../../kernel/rtnetlink-constants.ts";
import { isSameAddress } from "../../base/model/address.ts";
import type { LoAddress } from "../../container/files/restore.ts";
import { DEDICATED } from "./advertised-addresses.ts";

/** Marks an IPv4 address as ours. IPv6 addresses have no label, but no other program uses our dedicated one. */
const LABEL = "lo:dns11";
/** The dedicated address and the ones after it, in case a node uses it already. */
const CANDIDATES = 8;

/** The address to listen on: one that is free in the node. */
export function chooseListenAddress(existing: readonly InterfaceAddress[]): string {
  const first = Number(DEDICATED.ipv4.split(".")[3]);
  for (let step = 0; step < CANDIDATES; step++) {
    const address = DEDICATED.ipv4.replace(/\d+$/, String(first + step));
    const holder = existing.find((each) => each.address === address);
    if (holder === undefined || isOurs(holder)) return address;
  }
  throw new Fault("KIND_NO_ADDRESS", `The node already uses ${DEDICATED.ipv4} and the addresses after it`, {
    remedy: "Set kind.mode: loopback.",
  });
}

/** The wanted addresses that dns11 has to add, and to remove at the end. */
export function ownLoAddresses(
  wanted: readonly string[],
  existing: readonly InterfaceAddress[],
  known: readonly LoAddress[],
): LoAddress[] {
  const ours = wanted.filter((address) => {
    const holder = existing.find((each) => isSameAddress(each.address, address));
    return holder === undefined || isOurs(holder) || known.some((each) => each.address === address);
  });
  return ours.map((address) => ({ address, prefixLength: isIPv6(address) ? 128 : 32 }));
}

export function addLoAddresses(
  route: RouteSocket,
  existing: readonly InterfaceAddress[],
  addresses: readonly LoAddress[],
): void {
  for (const { address, prefixLength } of addresses) {
    if (existing.some((each) => isSameAddress(each.address, address))) continue;
    const label = isIPv6(address) ? {} : { label: LABEL };
    route.addAddress({ index: LOOPBACK_INDEX, address, prefixLength, ...label });
  }
}

function isOurs({ label, address }: InterfaceAddress): boolean {
  return label === LABEL || isSameAddress(address, DEDICATED.ipv6);
}
