/**
 * AdvertisedAddresses: the nameserver addresses for a node's pods. They must not change while there are pods, because a pod
 * keeps the resolv.conf that it was created with. So an address stays captured once it was advertised, even if the networks
 * change.
 */
import { isIPv6 } from "node:net";

import { isLoopback, isSameAddress } from "../../base/model/address.ts";
import type { KindPolicy } from "./feature.ts";
import type { AddressPair, NodeFact } from "./node-fact.ts";

/** The fallback: addresses on the node's lo, which pods can always reach. */
export const DEDICATED: { readonly ipv4: string; readonly ipv6: string } = {
  ipv4: "169.254.53.53",
  // A unique local address whose bits spell dns11.
  ipv6: "fd64:6e73:3131::53",
};

export interface AdvertisedInput {
  readonly policy: KindPolicy;
  readonly fact: NodeFact;
  /** Whether the node can use IPv6 at all. */
  readonly hasIpv6: boolean;
  /** The current nameservers of resolv.conf, without loopback addresses. */
  readonly nameservers: readonly string[];
  /** Addresses advertised since this start of the container, the newest last. */
  readonly before: readonly string[];
  /** Whether kind.ip has changed since then. */
  readonly isSettingNew: boolean;
  /** The addresses with which KIND's entrypoint replaced 127.0.0.11. */
  readonly fromEntrypoint: readonly string[];
}

export interface AdvertisedAddresses {
  /** The nameservers for resolv.conf, in order. */
  readonly advertised: readonly string[];
  /** The addresses whose port 53 dns11 captures, of both families. */
  readonly captured: readonly string[];
  /** Nameservers in resolv.conf that are not ours. */
  readonly foreign: readonly string[];
}

export function advertisedAddresses(input: AdvertisedInput): AdvertisedAddresses {
  const { policy, fact, hasIpv6, nameservers, before, fromEntrypoint, isSettingNew } = input;
  const configured = configuredAddresses(policy, fact);
  const ours = [configured.ipv4, configured.ipv6, fact.gateway.ipv4, fact.gateway.ipv6, ...before, ...fromEntrypoint];
  const isOurs = (address: string): boolean => ours.some((one) => one !== undefined && isSameAddress(one, address));
  const isAuto = policy.address === "auto";
  // Addresses advertised before stay: pods may use them.
  const kept = [...(isSettingNew ? [] : before.toReversed()), ...(isAuto ? nameservers.filter(isOurs) : [])];
  const ipv4 = kept.find((address) => !isIPv6(address)) ?? configured.ipv4 ?? DEDICATED.ipv4;
  const ipv6 = hasIpv6 ? (kept.find((address) => isIPv6(address)) ?? configured.ipv6 ?? DEDICATED.ipv6) : undefined;
  const captured = [ipv4, ipv6, ...before, ...nameservers.filter(isOurs)].filter((address) => address !== undefined);
  return {
    advertised: ofFamilies({ ipv4, ipv6 }, policy, fact),
    captured: [...new Set(captured)].filter((address) => hasIpv6 || !isIPv6(address)),
    foreign: nameservers.filter((address) => !isOurs(address)),
  };
}

/** The addresses that settings select. A missing family falls back to earlier or dedicated addresses. */
export function configuredAddresses({ address }: KindPolicy, { gateway, own, hostGateway }: NodeFact): AddressPair {
  switch (address) {
    case "auto":
    case "gateway":
      return gateway;
    case "node":
      return own;
    case "host":
      return isForPods(hostGateway) ? { ...gateway, ipv4: hostGateway } : gateway;
    default:
      return isIPv6(address) ? { ...gateway, ipv6: address } : { ...gateway, ipv4: address };
  }
}

/** If the engine runs in a VM, the host gateway may be a loopback address, which would be each pod itself. */
function isForPods(hostGateway: string | undefined): hostGateway is string {
  return hostGateway !== undefined && !isIPv6(hostGateway) && !isLoopback(hostGateway);
}

/** A pod without IPv4 would time out on an IPv4 nameserver, and vice versa. */
function ofFamilies({ ipv4, ipv6 }: AddressPair, { families }: KindPolicy, { own }: NodeFact): string[] {
  const hasIpv4 = families === "both" || families === "ipv4" || (families === "auto" && own.ipv4 !== undefined);
  const hasIpv6 = families === "both" || families === "ipv6" || (families === "auto" && !hasIpv4);
  const advertised = [hasIpv4 ? ipv4 : undefined, hasIpv6 ? ipv6 : undefined];
  return advertised.filter((address) => address !== undefined);
}
