/**
 * Layout of the policy's tables in the kernel: their chains and sets, by name, and the keys of the sets. The next version
 * of dns11 adopts what this one leaves, and an earlier one may come back: both write the rules of every chain that they know again.
 * So a chain may be added here; one that has another meaning, or a set with other keys, needs a new name of the tables.
 */
import * as nft from "../../../kernel/nft-constants.ts";
import { NftTable, type SetPlan, PORT_FIELDS_BYTES } from "../../../kernel/nft-table.ts";

const NFPROTO_INET = 1;
const NFPROTO_NETDEV = 5;
export const TABLE_NAME = "dns11-policy";

export type TableFamily = "inet" | "netdev";
export const TABLES: Readonly<Record<TableFamily, NftTable>> = {
  inet: new NftTable(NFPROTO_INET, TABLE_NAME),
  netdev: new NftTable(NFPROTO_NETDEV, TABLE_NAME),
};

/** An IP version, by the length of its addresses. */
export type AddressLength = 4 | 16;
export const ADDRESS_LENGTHS: readonly AddressLength[] = [4, 16];

/** The part of an id that stands in names: the kernel's names are longer than it, and no two ids share so much. */
const ID_LENGTH = 24;

export function shortId(id: string): string {
  return id.slice(0, ID_LENGTH);
}

const version = (length: AddressLength): 4 | 6 => (length === 4 ? 4 : 6);

/** Whose packets a chain judges, by source address: as they pass through the machine, and as they arrive at it. */
export const whoMap = (hook: "forward" | "input", length: AddressLength): string => `${hook}${version(length)}`;
/** The chain of a container, and the one that refuses. */
export const judgingChain = (id: string): string => `judge-${shortId(id)}`;
export const refusingChain = (id: string): string => `refuse-${shortId(id)}`;
/** Addresses that are open with every port, and those with one. */
export const addressSet = (id: string, length: AddressLength): string => `address${version(length)}-${shortId(id)}`;
export const portSet = (id: string, length: AddressLength): string => `port${version(length)}-${shortId(id)}`;
/** What was refused. */
export const seenSet = (id: string, length: AddressLength): string => `seen${version(length)}-${shortId(id)}`;
/** Addresses from which nothing passes: containers of which nothing else is known. */
export const heldSet = (length: AddressLength): string => `held${version(length)}`;
export const linkChain = (index: number): string => `link-${index}`;
/** Undefined if the chain is no link's. */
export const linkIndexOf = (chain: string): number | undefined => {
  const [, index] = /^link-(\d+)$/.exec(chain) ?? [];
  return index === undefined ? undefined : Number(index);
};
/** At a hook before translation: where a connection is sent to is known only there. */
export const SENT_CHAIN = "sent";
export const NETWORKS_CHAIN = "networks";
export const UNKNOWN_CHAIN = "unknown";
/** Kinds of ICMPv6 messages without which IPv6 does not work on a link. */
export const NEIGHBOUR_SET = "neighbour-messages";

/** The set of a container that a key belongs to: its length says which. */
export function setOfKey(id: string, key: Uint8Array): string {
  const length = key.length;
  if (length === 4 || length === 16) return addressSet(id, length);
  return portSet(id, length === 4 + PORT_FIELDS_BYTES ? 4 : 16);
}

/** Types by which nft(8) shows keys. */
const SHOWN = { ipv4: 7, ipv6: 8, protocol: 12, port: 13, icmpv6: 29 } as const;
const SHOWN_BITS = 6;

const addressType = (length: AddressLength): number => (length === 4 ? SHOWN.ipv4 : SHOWN.ipv6);

export function addressesPlan(name: string, length: AddressLength, flags: number): SetPlan {
  return { name, keyLength: length, shownAs: addressType(length), flags };
}

export function portsPlan(name: string, length: AddressLength, flags: number, size?: number): SetPlan {
  const shownAs = (((addressType(length) << SHOWN_BITS) | SHOWN.protocol) << SHOWN_BITS) | SHOWN.port;
  const sized = size === undefined ? {} : { size };
  return { name, keyLength: length + PORT_FIELDS_BYTES, shownAs, flags, ...sized };
}

export function whoPlan(name: string, length: AddressLength): SetPlan {
  return { ...addressesPlan(name, length, nft.NFT_SET_MAP), isVerdictMap: true };
}

export const NEIGHBOUR_PLAN: SetPlan = { name: NEIGHBOUR_SET, keyLength: 1, shownAs: SHOWN.icmpv6 };
