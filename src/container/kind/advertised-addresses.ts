/**
 * Published addresses: where a node's pods are told to ask. They must be the same for as long as there are pods, because
 * each pod keeps the resolv.conf that it was born with; so an address that was told once stays ours, whatever becomes of
 * the networks.
 */
import { isIPv6 } from "node:net";

import { isSameAddress } from "../../base/model/address.ts";
import type { KindPolicy } from "../../base/model/kind-policy.ts";
import type { AddressPair, NodeFact } from "./node-fact.ts";
import { isLoopback } from "./resolv-conf-text.ts";

/** Where nothing better is known, pods can reach what the node itself holds on lo. */
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
  /** What resolv.conf names already, without loopback addresses. */
  readonly nameservers: readonly string[];
  /** What was told before in this life of the container, the newest last. */
  readonly before: readonly string[];
  /** Whether settings ask for something else than they did then. */
  readonly isSettingNew: boolean;
  /** Addresses that KIND's own entrypoint put in the place of 127.0.0.11. */
  readonly fromEntrypoint: readonly string[];
}

export interface AdvertisedAddresses {
  /** What resolv.conf is to name, in order. */
  readonly advertised: readonly string[];
  /** All that is ours when asked at port 53, of both families. */
  readonly captured: readonly string[];
  /** What resolv.conf names that is not ours. */
  readonly foreign: readonly string[];
}

export function advertisedAddresses(input: AdvertisedInput): AdvertisedAddresses {
  const {
    policy,
    fact,
    hasIpv6,
    nameservers: named,
    before,
    fromEntrypoint: byEntrypoint,
    isSettingNew: isWishNew,
  } = input;
  const wish = configuredAddresses(policy, fact);
  const ours = [wish.ipv4, wish.ipv6, fact.gateway.ipv4, fact.gateway.ipv6, ...before, ...byEntrypoint];
  const isOurs = (address: string): boolean => ours.some((one) => one !== undefined && isSameAddress(one, address));
  const isAuto = policy.address === "auto";
  // What is told already is told on: pods may have it.
  const kept = [...(isWishNew ? [] : before.toReversed()), ...(isAuto ? named.filter(isOurs) : [])];
  const ipv4 = kept.find((address) => !isIPv6(address)) ?? wish.ipv4 ?? DEDICATED.ipv4;
  const ipv6 = hasIpv6 ? (kept.find((address) => isIPv6(address)) ?? wish.ipv6 ?? DEDICATED.ipv6) : undefined;
  const captured = [ipv4, ipv6, ...before, ...named.filter(isOurs)].filter((address) => address !== undefined);
  return {
    advertised: ofFamilies({ ipv4, ipv6 }, policy, fact),
    captured: [...new Set(captured)].filter((address) => hasIpv6 || !isIPv6(address)),
    foreign: named.filter((address) => !isOurs(address)),
  };
}

/** What settings ask for; without an address of a family, somebody else decides for it. */
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

/** Machines whose engine runs in another one may call the host by a loopback address, which is each pod itself. */
function isForPods(hostGateway: string | undefined): hostGateway is string {
  return hostGateway !== undefined && !isIPv6(hostGateway) && !isLoopback(hostGateway);
}

/** A pod without IPv4 would wait for a server that it cannot reach, and the other way round. */
function ofFamilies({ ipv4, ipv6 }: AddressPair, { families }: KindPolicy, { own }: NodeFact): string[] {
  const isIpv4Told = families === "both" || families === "ipv4" || (families === "auto" && own.ipv4 !== undefined);
  const isIpv6Told = families === "both" || families === "ipv6" || (families === "auto" && !isIpv4Told);
  const told = [isIpv4Told ? ipv4 : undefined, isIpv6Told ? ipv6 : undefined];
  return told.filter((address) => address !== undefined);
}
