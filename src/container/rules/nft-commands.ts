/**
 * NftCommands: a rule plan as nf_tables netlink commands. Every match is a load followed by a comparison.
 */
import { addressBytes } from "../../base/model/address.ts";
import { NLM_F_APPEND, NLM_F_CREATE, type NetlinkWriter } from "../../kernel/netlink-message.ts";
import { NFPROTO_IPV4, NFPROTO_IPV6, type NftCommand, deleteTable } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import {
  compare,
  expression,
  loadImmediate,
  loadMeta,
  loadPayload,
  loadTracked,
  maskBytes,
  nativeU16,
  nativeU32,
  nativeU64,
  networkU16,
  verdict,
} from "../../kernel/nft-expressions.ts";
import { LOOPBACK_INDEX } from "../../kernel/rtnetlink-constants.ts";
import {
  type Action,
  type ChainPlan,
  type IpFamily,
  type Match,
  type Protocol,
  TABLE_NAME,
  type TablePlan,
} from "./plan.ts";

export const PROTOCOL_NUMBER: Record<Protocol, number> = { udp: 17, tcp: 6 };
export const FAMILY_NUMBER: Record<IpFamily, number> = { ip: NFPROTO_IPV4, ip6: NFPROTO_IPV6 };
/** Offset and length of the addresses in the IP header. */
export const ADDRESSES = {
  ip: { source: 12, destination: 16, length: 4 },
  ip6: { source: 8, destination: 24, length: 16 },
} as const;
const LOOPBACK_FIRST_OCTET = 127;
const NOT_TRANSLATED = 0;
/** linux/netfilter/xt_string.h */
const STRING_MATCH_REVISION = 1;
const STRING_MATCH_BYTES_MAX = 128;
const STRING_MATCH_SIZE = 160;
const STRING_MATCH_INVERTS = 1;
const STRING_MATCH_IGNORES_CASE = 2;
const SOURCE_PORT_OFFSET = 0;
const DESTINATION_PORT_OFFSET = 2;

/** Creates the tables with everything in them; owned tables belong to the socket that sends this. */
function createCommands(plans: readonly TablePlan[], isOwned: boolean): NftCommand[] {
  return tableCommands(plans, (w) => {
    if (isOwned) w.u32(nft.NFTA_TABLE_FLAGS, nft.NFT_TABLE_F_OWNER);
  });
}

/** Creates permanent tables, with a comment that identifies them. */
export function permanentCommands(plans: readonly TablePlan[], comment: string): NftCommand[] {
  const text = Buffer.from(`${comment}\0`, "latin1");
  const userData = Buffer.concat([Buffer.of(nft.UDATA_COMMENT, text.length), text]);
  return tableCommands(plans, (w) => w.attribute(nft.NFTA_TABLE_USERDATA, userData));
}

function tableCommands(plans: readonly TablePlan[], kind: (w: NetlinkWriter) => void): NftCommand[] {
  return plans.flatMap((plan) => [
    {
      family: FAMILY_NUMBER[plan.family],
      command: nft.NFT_MSG_NEWTABLE,
      flags: NLM_F_CREATE,
      about: titleOf(plan),
      write: (w: NetlinkWriter) => {
        w.text(nft.NFTA_TABLE_NAME, plan.name);
        kind(w);
      },
    },
    ...plan.chains.map((chain) => createChain(plan, chain)),
    ...createRules(plan),
  ]);
}

/** Replaces the rules of the existing chains in one transaction, so that no query finds them missing. */
export function replaceRuleCommands(plans: readonly TablePlan[]): NftCommand[] {
  return plans.flatMap((plan) => [
    {
      family: FAMILY_NUMBER[plan.family],
      command: nft.NFT_MSG_DELRULE,
      flags: 0,
      about: `all rules of ${titleOf(plan)}`,
      write: (w: NetlinkWriter) => w.text(nft.NFTA_RULE_TABLE, plan.name),
    },
    ...createRules(plan),
  ]);
}

/** Replaces whole tables, with their chains, in one transaction. */
export function replaceTableCommands(
  families: Iterable<IpFamily>,
  plans: readonly TablePlan[],
  isOwned: boolean,
): NftCommand[] {
  const removals = [...families].flatMap((family) => deleteCommands({ family, name: TABLE_NAME }));
  return [...removals, ...createCommands(plans, isOwned)];
}

/** Deletes a table. The kernel refuses if another process owns it or if it does not exist. */
export function deleteCommands({ family, name }: Pick<TablePlan, "family" | "name">): NftCommand[] {
  return [deleteTable(FAMILY_NUMBER[family], name)];
}

function titleOf({ family, name }: TablePlan): string {
  return `table ${family} ${name}`;
}

function createChain(plan: TablePlan, chain: ChainPlan): NftCommand {
  return {
    family: FAMILY_NUMBER[plan.family],
    command: nft.NFT_MSG_NEWCHAIN,
    flags: NLM_F_CREATE,
    about: `chain ${chain.name} of ${titleOf(plan)}`,
    write: (w) => {
      w.text(nft.NFTA_CHAIN_TABLE, plan.name);
      w.text(nft.NFTA_CHAIN_NAME, chain.name);
      w.nested(nft.NFTA_CHAIN_HOOK, () => {
        w.u32(nft.NFTA_HOOK_HOOKNUM, nft.NF_HOOKS.indexOf(chain.hook));
        w.u32(nft.NFTA_HOOK_PRIORITY, chain.priority);
      });
      w.u32(nft.NFTA_CHAIN_POLICY, nft.NF_ACCEPT);
      w.text(nft.NFTA_CHAIN_TYPE, chain.type);
    },
  };
}

function createRules(plan: TablePlan): NftCommand[] {
  return plan.chains.flatMap((chain) =>
    chain.rules.map((rule, index) => ({
      family: FAMILY_NUMBER[plan.family],
      command: nft.NFT_MSG_NEWRULE,
      flags: NLM_F_CREATE | NLM_F_APPEND,
      about: `rule ${index + 1} of chain ${chain.name} (${rule.action.kind})`,
      write: (w: NetlinkWriter) => {
        w.text(nft.NFTA_RULE_TABLE, plan.name);
        w.text(nft.NFTA_RULE_CHAIN, chain.name);
        w.nested(nft.NFTA_RULE_EXPRESSIONS, () => {
          writeMatch(w, plan.family, rule.match);
          writeAction(w, plan.family, rule.action);
        });
      },
    })),
  );
}

function writeMatch(w: NetlinkWriter, family: IpFamily, match: Match): void {
  const { source, destination, length } = ADDRESSES[family];
  if (match.mark !== undefined) {
    loadMeta(w, nft.NFT_META_MARK);
    compare(w, nativeU32(match.mark));
  }
  if (match.interface !== undefined) {
    loadMeta(w, nft.NFT_META_IIF);
    compare(w, nativeU32(match.interface));
  }
  if (match.isFromOutside === true) {
    loadMeta(w, nft.NFT_META_IIF);
    compare(w, nativeU32(LOOPBACK_INDEX), nft.NFT_CMP_NEQ);
  }
  if (match.protocol !== undefined) {
    loadMeta(w, nft.NFT_META_L4PROTO);
    compare(w, Buffer.of(PROTOCOL_NUMBER[match.protocol]));
  }
  if (match.source !== undefined) {
    loadPayload(w, { base: nft.NETWORK_HEADER, offset: source, length });
    compare(w, bytesOf(match.source, family));
  }
  if (match.destination !== undefined) {
    loadPayload(w, { base: nft.NETWORK_HEADER, offset: destination, length });
    compare(w, bytesOf(match.destination, family));
  }
  if (match.isToLoopback === true) {
    loadPayload(w, { base: nft.NETWORK_HEADER, offset: destination, length: 1 });
    compare(w, Buffer.of(LOOPBACK_FIRST_OCTET));
  }
  if (match.sourcePort !== undefined) {
    loadPayload(w, { base: nft.TRANSPORT_HEADER, offset: SOURCE_PORT_OFFSET, length: 2 });
    compare(w, networkU16(match.sourcePort));
  }
  if (match.destinationPort !== undefined) {
    loadPayload(w, { base: nft.TRANSPORT_HEADER, offset: DESTINATION_PORT_OFFSET, length: 2 });
    compare(w, networkU16(match.destinationPort));
  }
  if (match.controlGroup !== undefined) {
    const { id, level } = match.controlGroup;
    expression(w, "socket", () => {
      w.u32(nft.NFTA_SOCKET_KEY, nft.NFT_SOCKET_CGROUPV2);
      w.u32(nft.NFTA_SOCKET_DREG, nft.NFT_REG_1);
      w.u32(nft.NFTA_SOCKET_LEVEL, level);
    });
    compare(w, nativeU64(id));
  }
  if (match.bytes !== undefined) matchString(w, match.bytes, STRING_MATCH_IGNORES_CASE);
  if (match.lacksBytes !== undefined) {
    matchString(w, match.lacksBytes, STRING_MATCH_IGNORES_CASE | STRING_MATCH_INVERTS);
  }
  if (match.isNotDnat === true || match.isDnat === true) {
    loadTracked(w, nft.NFT_CT_STATUS);
    maskBytes(w, nativeU32(nft.IPS_DST_NAT));
    compare(w, nativeU32(NOT_TRANSLATED), match.isDnat === true ? nft.NFT_CMP_NEQ : undefined);
  }
}

function writeAction(w: NetlinkWriter, family: IpFamily, action: Action): void {
  switch (action.kind) {
    case "accept":
      verdict(w, nft.NF_ACCEPT);
      return;
    case "drop":
      expression(w, "counter", () => undefined);
      verdict(w, nft.NF_DROP);
      return;
    case "zone":
      loadImmediate(w, nft.NFT_REG_1, nativeU16(action.zone));
      expression(w, "ct", () => {
        w.u32(nft.NFTA_CT_KEY, nft.NFT_CT_ZONE);
        w.u32(nft.NFTA_CT_SREG, nft.NFT_REG_1);
      });
      return;
    case "notrack":
      expression(w, "notrack", () => undefined);
      return;
    case "dnat":
    case "snat":
      translate(w, family, action);
      return;
  }
}

function translate(w: NetlinkWriter, family: IpFamily, action: Extract<Action, { kind: "dnat" | "snat" }>): void {
  const { kind, address, port } = action;
  if (address !== undefined) loadImmediate(w, nft.NFT_REG_1, bytesOf(address, family));
  loadImmediate(w, nft.NFT_REG_2, networkU16(port));
  expression(w, "nat", () => {
    w.u32(nft.NFTA_NAT_TYPE, kind === "dnat" ? nft.NFT_NAT_DNAT : nft.NFT_NAT_SNAT);
    w.u32(nft.NFTA_NAT_FAMILY, FAMILY_NUMBER[family]);
    if (address !== undefined) w.u32(nft.NFTA_NAT_REG_ADDR_MIN, nft.NFT_REG_1);
    w.u32(nft.NFTA_NAT_REG_PROTO_MIN, nft.NFT_REG_2);
  });
}

/** struct xt_string_info: the whole packet is searched, in any letter case. */
function matchString(w: NetlinkWriter, bytes: Uint8Array, flags: number): void {
  if (bytes.length > STRING_MATCH_BYTES_MAX) throw new RangeError(`Cannot match ${bytes.length} bytes`);
  const info = Buffer.alloc(STRING_MATCH_SIZE);
  info.writeUInt16LE(0xffff, 2);
  info.write("kmp", 4, "latin1");
  info.set(bytes, 20);
  info.writeUInt8(bytes.length, 148);
  info.writeUInt8(flags, 149);
  expression(w, "match", () => {
    w.text(nft.NFTA_MATCH_NAME, "string");
    w.u32(nft.NFTA_MATCH_REV, STRING_MATCH_REVISION);
    w.attribute(nft.NFTA_MATCH_INFO, info);
  });
}

function bytesOf(text: string, family: IpFamily): Uint8Array {
  const bytes = addressBytes(text);
  if (bytes?.length !== ADDRESSES[family].length) throw new TypeError(`Not an ${family} address: "${text}"`);
  return bytes;
}
