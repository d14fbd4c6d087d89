/**
 * ZoneMember: a container that has names in zones, and the set of them that lookups read: on this machine, or on all.
 */
import type { ServicePlace } from "../../facts/label-service.ts";

/**
 * What its addresses are. `container`: its own. `machine`: the machine's, where each of its ports is published under its
 * own number. `ports`: the machine's, and its ports have other numbers, so that an address alone leads elsewhere. `swarm`:
 * its own, for containers of its swarm networks alone.
 */
export const MEMBER_REACHES = ["container", "machine", "ports", "swarm"] as const;
export type MemberReach = (typeof MEMBER_REACHES)[number];

export interface Addresses {
  readonly v4: readonly Uint8Array[];
  readonly v6: readonly Uint8Array[];
}

/** Its addresses on one network: at most one of each family. */
export interface MemberEndpoint extends Addresses {
  readonly networkId: string;
}

export interface ZoneMember extends ServicePlace {
  readonly id: string;
  /** It is neither paused nor unhealthy nor still starting. */
  readonly isReady: boolean;
  readonly endpoints: readonly MemberEndpoint[];
  /** A member that another machine has published has them. */
  readonly remote?: RemoteTraits;
}

interface RemoteTraits {
  readonly machine: string;
  readonly reach: MemberReach;
  /** Other ways to the same container, which come first: who gets one of these addresses does not get this one's. */
  readonly unless: readonly MemberEndpoint[];
}

/** The network of an endpoint whose addresses are reached from all networks with a way out. */
export const EVERYWHERE = "";

/** One address of a container, and where it has it. */
export interface AddressHolder {
  readonly member: ZoneMember;
  readonly endpoint: MemberEndpoint;
  readonly address: Uint8Array;
}

/** Each of them may be a wildcard. */
export interface MemberPlace {
  readonly project: string;
  readonly service: string;
  readonly host: string;
}

export interface MemberSet {
  /** The members of each service that matches, those on each machine together. A group may be empty. */
  groups(place: MemberPlace): Iterable<Iterable<ZoneMember>>;
  /** The containers of each service. */
  services(): Iterable<readonly ZoneMember[]>;
  /** Finds those that have the address of which these are the labels below in-addr.arpa or ip6.arpa. */
  withAddress(labels: Uint8Array, length: number, hash: number): readonly AddressHolder[];
}

/** What other machines have in the zones. Its members are none of this machine. */
export interface OtherMachines {
  readonly members: MemberSet;
  /** What knows them, as messages name it. */
  readonly store: string;
  /** Whether they are known: if not, nothing can be denied. */
  readonly isUsable: boolean;
  /** Members on this machine come first in answers. */
  readonly isNearestFirst: boolean;
  /** The addresses of a machine, as it has published them. */
  hostOf(machine: string): Addresses | undefined;
}

/** What matches every label, as in SkyDNS. */
export const EVERY = "*";
const ANY = new Set([EVERY, "any"]);

export function isAny(label: string): boolean {
  return ANY.has(label);
}
