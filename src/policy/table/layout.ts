/**
 * Layout of the policy's tables in the kernel: their chains and sets, by name, and the keys of the sets. The next version
 * of dns11 adopts what this one leaves, so a change here needs a new name of the tables.
 */
import { NLM_F_APPEND, NLM_F_CREATE, type NetlinkWriter } from "../../kernel/netlink-message.ts";
import type { NftCommand } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import { writeVerdict } from "../../kernel/nft-expressions.ts";

const NFPROTO_INET = 1;
const NFPROTO_NETDEV = 5;
export const TABLE_NAME = "dns11-policy";

export type TableFamily = "inet" | "netdev";
export const FAMILY_NUMBERS: Record<TableFamily, number> = { inet: NFPROTO_INET, netdev: NFPROTO_NETDEV };

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
export const linkChain = (index: number): string => `link-${index}`;
export const NETWORKS_CHAIN = "networks";
export const UNKNOWN_CHAIN = "unknown";
/** Kinds of ICMPv6 messages without which IPv6 does not work on a link. */
export const NEIGHBOUR_SET = "neighbour-messages";

/** Each field of a key takes whole words. */
const WORD = 4;
const PORT_FIELDS = 2 * WORD;

/** The key of an address with one port. */
export function portKey(address: Uint8Array, protocol: number, port: number): Buffer {
  const key = Buffer.alloc(address.length + PORT_FIELDS);
  key.set(address);
  key[address.length] = protocol;
  key.writeUInt16BE(port, address.length + WORD);
  return key;
}

export function readPortKey(key: Buffer): { address: Buffer; protocol: number; port: number } {
  const at = key.length - PORT_FIELDS;
  return { address: key.subarray(0, at), protocol: key[at] ?? 0, port: key.readUInt16BE(at + WORD) };
}

/** The set of a container that a key belongs to: its length says which. */
export function setOfKey(id: string, key: Uint8Array): string {
  const length = key.length;
  if (length === 4 || length === 16) return addressSet(id, length);
  return portSet(id, length === 4 + PORT_FIELDS ? 4 : 16);
}

/** Types by which nft(8) shows keys. */
const SHOWN = { ipv4: 7, ipv6: 8, protocol: 12, port: 13, icmpv6: 29 } as const;
const SHOWN_BITS = 6;

export interface SetPlan {
  readonly family: TableFamily;
  readonly name: string;
  readonly keyLength: number;
  readonly shownAs: number;
  readonly flags: number;
  readonly isVerdictMap?: boolean;
  readonly size?: number;
}

const addressType = (length: AddressLength): number => (length === 4 ? SHOWN.ipv4 : SHOWN.ipv6);

export function addressesPlan(name: string, length: AddressLength, flags: number): SetPlan {
  return { family: "inet", name, keyLength: length, shownAs: addressType(length), flags };
}

export function portsPlan(name: string, length: AddressLength, flags: number, size?: number): SetPlan {
  const shownAs = (((addressType(length) << SHOWN_BITS) | SHOWN.protocol) << SHOWN_BITS) | SHOWN.port;
  const sized = size === undefined ? {} : { size };
  return { family: "inet", name, keyLength: length + PORT_FIELDS, shownAs, flags, ...sized };
}

export function whoPlan(name: string, length: AddressLength): SetPlan {
  return { ...addressesPlan(name, length, nft.NFT_SET_MAP), isVerdictMap: true };
}

export const NEIGHBOUR_PLAN: SetPlan = {
  family: "netdev",
  name: NEIGHBOUR_SET,
  keyLength: 1,
  shownAs: SHOWN.icmpv6,
  flags: 0,
};

function inTable(
  family: TableFamily,
  command: number,
  flags: number,
  about: string,
  write: NftCommand["write"],
): NftCommand {
  return { family: FAMILY_NUMBERS[family], command, flags, about, write };
}

/** Creates a set, or finds it as it is. Its id is needed only within a transaction, by which nothing refers to it here. */
export function createSet(plan: SetPlan): NftCommand {
  return inTable(plan.family, nft.NFT_MSG_NEWSET, NLM_F_CREATE, `set ${plan.name}`, (w) => {
    w.text(nft.NFTA_SET_TABLE, TABLE_NAME);
    w.text(nft.NFTA_SET_NAME, plan.name);
    w.u32(nft.NFTA_SET_FLAGS, plan.flags);
    w.u32(nft.NFTA_SET_KEY_TYPE, plan.shownAs);
    w.u32(nft.NFTA_SET_KEY_LEN, plan.keyLength);
    if (plan.isVerdictMap === true) w.u32(nft.NFTA_SET_DATA_TYPE, nft.NFT_DATA_VERDICT);
    if (plan.size !== undefined) {
      const { size } = plan;
      w.nested(nft.NFTA_SET_DESC, () => w.u32(nft.NFTA_SET_DESC_SIZE, size));
    }
    w.u32(nft.NFTA_SET_ID, 1);
  });
}

export function deleteSet(family: TableFamily, name: string): NftCommand {
  return inTable(family, nft.NFT_MSG_DELSET, 0, `set ${name}`, (w) => {
    w.text(nft.NFTA_SET_TABLE, TABLE_NAME);
    w.text(nft.NFTA_SET_NAME, name);
  });
}

export interface Element {
  readonly key: Uint8Array;
  readonly timeoutMs?: number;
  /** Of an element of a map: the code, and the chain of a goto. */
  readonly verdict?: { readonly code: number; readonly chain?: string };
}

export function changeElements(
  change: "add" | "remove",
  family: TableFamily,
  set: string,
  elements: readonly Element[],
): NftCommand {
  const [command, flags] = change === "add" ? [nft.NFT_MSG_NEWSETELEM, NLM_F_CREATE] : [nft.NFT_MSG_DELSETELEM, 0];
  return inTable(family, command, flags, `elements of ${set}`, (w) => {
    w.text(nft.NFTA_SET_ELEM_LIST_TABLE, TABLE_NAME);
    w.text(nft.NFTA_SET_ELEM_LIST_SET, set);
    w.nested(nft.NFTA_SET_ELEM_LIST_ELEMENTS, () => {
      for (const element of elements) w.nested(nft.NFTA_LIST_ELEM, () => writeElement(w, element, change));
    });
  });
}

function writeElement(w: NetlinkWriter, { key, timeoutMs, verdict }: Element, change: "add" | "remove"): void {
  w.nested(nft.NFTA_SET_ELEM_KEY, () => w.attribute(nft.NFTA_DATA_VALUE, key));
  if (change === "remove") return;
  if (timeoutMs !== undefined) w.u64(nft.NFTA_SET_ELEM_TIMEOUT, timeoutMs);
  if (verdict !== undefined) w.nested(nft.NFTA_SET_ELEM_DATA, () => writeVerdict(w, verdict.code, verdict.chain));
}

/** A hook of the kernel that runs a chain. */
export interface Hook {
  readonly number: number;
  readonly priority: number;
  readonly device?: string;
}

/** Creates a chain, or finds it as it is. */
export function createChain(family: TableFamily, name: string, hook?: Hook): NftCommand {
  return inTable(family, nft.NFT_MSG_NEWCHAIN, NLM_F_CREATE, `chain ${name}`, (w) => {
    w.text(nft.NFTA_CHAIN_TABLE, TABLE_NAME);
    w.text(nft.NFTA_CHAIN_NAME, name);
    if (hook === undefined) return;
    w.nested(nft.NFTA_CHAIN_HOOK, () => {
      w.u32(nft.NFTA_HOOK_HOOKNUM, hook.number);
      w.u32(nft.NFTA_HOOK_PRIORITY, hook.priority);
      if (hook.device !== undefined) w.text(nft.NFTA_HOOK_DEV, hook.device);
    });
    w.u32(nft.NFTA_CHAIN_POLICY, nft.NF_ACCEPT);
    w.text(nft.NFTA_CHAIN_TYPE, "filter");
  });
}

export function deleteChain(family: TableFamily, name: string): NftCommand {
  return inTable(family, nft.NFT_MSG_DELCHAIN, 0, `chain ${name}`, (w) => {
    w.text(nft.NFTA_CHAIN_TABLE, TABLE_NAME);
    w.text(nft.NFTA_CHAIN_NAME, name);
  });
}

/** The expressions of one rule. */
export type Rule = (w: NetlinkWriter) => void;

/** Replaces all rules of a chain. */
export function replaceRules(family: TableFamily, chain: string, rules: readonly Rule[]): NftCommand[] {
  return [
    inTable(family, nft.NFT_MSG_DELRULE, 0, `rules of ${chain}`, (w) => {
      w.text(nft.NFTA_RULE_TABLE, TABLE_NAME);
      w.text(nft.NFTA_RULE_CHAIN, chain);
    }),
    ...rules.map((rule, index) =>
      inTable(family, nft.NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, `rule ${index + 1} of ${chain}`, (w) => {
        w.text(nft.NFTA_RULE_TABLE, TABLE_NAME);
        w.text(nft.NFTA_RULE_CHAIN, chain);
        w.nested(nft.NFTA_RULE_EXPRESSIONS, () => rule(w));
      }),
    ),
  ];
}

export function createTable(family: TableFamily, flags: number): NftCommand {
  return inTable(family, nft.NFT_MSG_NEWTABLE, NLM_F_CREATE, `table ${family} ${TABLE_NAME}`, (w) => {
    w.text(nft.NFTA_TABLE_NAME, TABLE_NAME);
    if (flags !== 0) w.u32(nft.NFTA_TABLE_FLAGS, flags);
  });
}
