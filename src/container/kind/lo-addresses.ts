/**
 * Addresses that a node's lo holds for us: one to listen on, which stays whatever becomes of the node's networks, and
 * those that no route leads to, so that the node itself can ask there. The kernel remembers whose they are.
 */
import { isIPv6 } from "node:net";

import { codeOf, Fault } from "../../base/lib/fault.ts";
import { procText } from "../../kernel/proc-text.ts";
import { type InterfaceAddress, type RouteSocket } from "../../kernel/rtnetlink.ts";
import { isSameAddress } from "../../base/model/address.ts";
import { DEDICATED } from "./advertised-addresses.ts";

export interface LoAddress {
  readonly address: string;
  readonly prefixLength: number;
}

const LOOPBACK_INDEX = 1;
/** By this label an IPv4 address is known as ours; IPv6 has none, but nobody else has that address. */
const LABEL = "lo:dns11";
/** The dedicated address and those after it, for nodes that have it already. */
const CHOICES = 8;

/** Whether the node can use IPv6 at all; to be called inside the namespace. */
export function isIpv6Enabled(): boolean {
  try {
    return procText("/proc/sys/net/ipv6/conf/lo/disable_ipv6")?.trim() === "0";
  } catch {
    return false;
  }
}

/** Where we listen: an address that nobody else in the node has. */
export function chooseListenAddress(held: readonly InterfaceAddress[]): string {
  const first = Number(DEDICATED.ipv4.split(".")[3]);
  for (let step = 0; step < CHOICES; step++) {
    const address = DEDICATED.ipv4.replace(/\d+$/, String(first + step));
    const existing = held.find((each) => each.address === address);
    if (existing === undefined || isOurs(existing)) return address;
  }
  throw new Fault("KIND_NO_ADDRESS", `The node holds ${DEDICATED.ipv4} and the addresses after it already`, {
    remedy: "Set kind.mode to loopback.",
  });
}

/** Of the wanted ones, those that are ours to hold and to take away again. */
export function ownLoAddresses(
  wanted: readonly string[],
  held: readonly InterfaceAddress[],
  known: readonly LoAddress[],
): LoAddress[] {
  const ours = wanted.filter((address) => {
    const existing = held.find((each) => isSameAddress(each.address, address));
    return existing === undefined || isOurs(existing) || known.some((each) => each.address === address);
  });
  return ours.map((address) => ({ address, prefixLength: isIPv6(address) ? 128 : 32 }));
}

export function addLoAddresses(
  route: RouteSocket,
  held: readonly InterfaceAddress[],
  addresses: readonly LoAddress[],
): void {
  for (const { address, prefixLength } of addresses) {
    if (held.some((each) => isSameAddress(each.address, address))) continue;
    const label = isIPv6(address) ? {} : { label: LABEL };
    route.addAddress({ index: LOOPBACK_INDEX, address, prefixLength, ...label });
  }
}

/** Returns those that were still there. */
export function removeLoAddresses(route: RouteSocket, addresses: readonly LoAddress[]): string[] {
  return addresses.flatMap((each) => {
    try {
      route.removeAddress({ index: LOOPBACK_INDEX, ...each });
      return [each.address];
    } catch (error) {
      if (codeOf(error) !== "EADDRNOTAVAIL") throw error;
      return [];
    }
  });
}

function isOurs({ label, address }: InterfaceAddress): boolean {
  return label === LABEL || isSameAddress(address, DEDICATED.ipv6);
}
