/**
 * A plan in the kernel's words: chains and rules as nf_tables commands, every match as "load, compare".
 */
import { addressBytes } from "../../model/address.ts";
import { NLM_F_APPEND, NLM_F_CREATE, type NetlinkWriter } from "../../kernel/netlink-message.ts";
import { NFPROTO_IPV4, type NftCommand } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-vocabulary.ts";
import type { Action, ChainPlan, Match, Protocol, RulePlan, TablePlan } from "./plan.ts";

const PROTOCOL_NUMBER: Record<Protocol, number> = { udp: 17, tcp: 6 };
const IP_SOURCE_OFFSET = 12;
const IP_DESTINATION_OFFSET = 16;
const SOURCE_PORT_OFFSET = 0;
const DESTINATION_PORT_OFFSET = 2;

/** Makes the table, owned by the socket that sends this, with everything in it. */
export function createCommands(plan: TablePlan): NftCommand[] {
  return [
    {
      command: nft.NFT_MSG_NEWTABLE,
      flags: NLM_F_CREATE,
      about: `table ip ${plan.name} with flag owner`,
      write: (w) => {
        w.text(nft.NFTA_TABLE_NAME, plan.name);
        w.u32(nft.NFTA_TABLE_FLAGS, nft.NFT_TABLE_F_OWNER);
      },
    },
    ...plan.chains.map((chain) => createChain(plan, chain)),
    ...createRules(plan),
  ];
}

/** Puts other rules into the chains that stand, in one step: no query meets a gap. */
export function replaceCommands(plan: TablePlan): NftCommand[] {
  return [
    {
      command: nft.NFT_MSG_DELRULE,
      flags: 0,
      about: `all rules of table ip ${plan.name}`,
      write: (w) => w.text(nft.NFTA_RULE_TABLE, plan.name),
    },
    ...createRules(plan),
  ];
}

/** Removes a table and all in it; the kernel refuses where somebody else owns it. */
export function deleteCommands(tableName: string): NftCommand[] {
  return [
    {
      command: nft.NFT_MSG_DELTABLE,
      flags: 0,
      about: `table ip ${tableName}`,
      write: (w) => w.text(nft.NFTA_TABLE_NAME, tableName),
    },
  ];
}

function createChain(plan: TablePlan, chain: ChainPlan): NftCommand {
  return {
    command: nft.NFT_MSG_NEWCHAIN,
    flags: NLM_F_CREATE,
    about: `chain ${chain.name} of table ip ${plan.name}`,
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
      command: nft.NFT_MSG_NEWRULE,
      flags: NLM_F_CREATE | NLM_F_APPEND,
      about: `rule ${index + 1} of chain ${chain.name} (${rule.action.kind})`,
      write: (w: NetlinkWriter) => {
        w.text(nft.NFTA_RULE_TABLE, plan.name);
        w.text(nft.NFTA_RULE_CHAIN, chain.name);
        w.nested(nft.NFTA_RULE_EXPRESSIONS, () => writeRule(w, rule));
      },
    })),
  );
}

function writeRule(w: NetlinkWriter, { match, action }: RulePlan): void {
  writeMatch(w, match);
  writeAction(w, action);
}

function writeMatch(w: NetlinkWriter, match: Match): void {
  if (match.mark !== undefined) {
    loadMeta(w, nft.NFT_META_MARK);
    compare(w, nativeU32(match.mark));
  }
  if (match.protocol !== undefined) {
    loadMeta(w, nft.NFT_META_L4PROTO);
    compare(w, Buffer.of(PROTOCOL_NUMBER[match.protocol]));
  }
  if (match.source !== undefined) {
    loadPayload(w, nft.NETWORK_HEADER, IP_SOURCE_OFFSET, 4);
    compare(w, ipv4(match.source));
  }
  if (match.destination !== undefined) {
    loadPayload(w, nft.NETWORK_HEADER, IP_DESTINATION_OFFSET, 4);
    compare(w, ipv4(match.destination));
  }
  if (match.sourcePort !== undefined) {
    loadPayload(w, nft.TRANSPORT_HEADER, SOURCE_PORT_OFFSET, 2);
    compare(w, networkU16(match.sourcePort));
  }
  if (match.destinationPort !== undefined) {
    loadPayload(w, nft.TRANSPORT_HEADER, DESTINATION_PORT_OFFSET, 2);
    compare(w, networkU16(match.destinationPort));
  }
}

function writeAction(w: NetlinkWriter, action: Action): void {
  switch (action.kind) {
    case "accept":
      expression(w, "immediate", () => {
        w.u32(nft.NFTA_IMMEDIATE_DREG, nft.NFT_REG_VERDICT);
        w.nested(nft.NFTA_IMMEDIATE_DATA, () => {
          w.nested(nft.NFTA_DATA_VERDICT, () => w.u32(nft.NFTA_VERDICT_CODE, nft.NF_ACCEPT));
        });
      });
      return;
    case "zone":
      loadImmediate(w, nft.NFT_REG_1, nativeU16(action.zone));
      expression(w, "ct", () => {
        w.u32(nft.NFTA_CT_KEY, nft.NFT_CT_ZONE);
        w.u32(nft.NFTA_CT_SREG, nft.NFT_REG_1);
      });
      return;
    case "dnat":
      loadImmediate(w, nft.NFT_REG_1, ipv4(action.address));
      loadImmediate(w, nft.NFT_REG_2, networkU16(action.port));
      expression(w, "nat", () => {
        w.u32(nft.NFTA_NAT_TYPE, nft.NFT_NAT_DNAT);
        w.u32(nft.NFTA_NAT_FAMILY, NFPROTO_IPV4);
        w.u32(nft.NFTA_NAT_REG_ADDR_MIN, nft.NFT_REG_1);
        w.u32(nft.NFTA_NAT_REG_PROTO_MIN, nft.NFT_REG_2);
      });
      return;
    case "snat-port":
      loadImmediate(w, nft.NFT_REG_1, networkU16(action.port));
      expression(w, "nat", () => {
        w.u32(nft.NFTA_NAT_TYPE, nft.NFT_NAT_SNAT);
        w.u32(nft.NFTA_NAT_FAMILY, NFPROTO_IPV4);
        w.u32(nft.NFTA_NAT_REG_PROTO_MIN, nft.NFT_REG_1);
      });
      return;
  }
}

function expression(w: NetlinkWriter, name: string, body: () => void): void {
  w.nested(nft.NFTA_LIST_ELEM, () => {
    w.text(nft.NFTA_EXPR_NAME, name);
    w.nested(nft.NFTA_EXPR_DATA, body);
  });
}

function loadMeta(w: NetlinkWriter, key: number): void {
  expression(w, "meta", () => {
    w.u32(nft.NFTA_META_DREG, nft.NFT_REG_1);
    w.u32(nft.NFTA_META_KEY, key);
  });
}

function loadPayload(w: NetlinkWriter, base: number, offset: number, length: number): void {
  expression(w, "payload", () => {
    w.u32(nft.NFTA_PAYLOAD_DREG, nft.NFT_REG_1);
    w.u32(nft.NFTA_PAYLOAD_BASE, base);
    w.u32(nft.NFTA_PAYLOAD_OFFSET, offset);
    w.u32(nft.NFTA_PAYLOAD_LEN, length);
  });
}

function compare(w: NetlinkWriter, value: Uint8Array): void {
  expression(w, "cmp", () => {
    w.u32(nft.NFTA_CMP_SREG, nft.NFT_REG_1);
    w.u32(nft.NFTA_CMP_OP, nft.NFT_CMP_EQ);
    w.nested(nft.NFTA_CMP_DATA, () => w.attribute(nft.NFTA_DATA_VALUE, value));
  });
}

function loadImmediate(w: NetlinkWriter, register: number, value: Uint8Array): void {
  expression(w, "immediate", () => {
    w.u32(nft.NFTA_IMMEDIATE_DREG, register);
    w.nested(nft.NFTA_IMMEDIATE_DATA, () => w.attribute(nft.NFTA_DATA_VALUE, value));
  });
}

function ipv4(text: string): Uint8Array {
  const bytes = addressBytes(text);
  if (bytes?.length !== 4) throw new TypeError(`Not an IPv4 address: "${text}"`);
  return bytes;
}

function networkU16(value: number): Buffer {
  return Buffer.of(value >> 8, value & 0xff);
}

/** Registers that hold numbers of the kernel's own, not of a packet, are in the machine's order. */
function nativeU16(value: number): Uint8Array {
  return new Uint8Array(Uint16Array.of(value).buffer);
}

function nativeU32(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}
