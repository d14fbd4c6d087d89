/**
 * NftCommands: a rule plan as nf_tables netlink commands. Every match is a load followed by a comparison.
 */
import { addressBytes } from "../../base/model/address.ts";
import { NFPROTO_IPV4, NFPROTO_IPV6, type NftCommand } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import {
  type Expression,
  type Rule,
  accept,
  compare,
  counter,
  drop,
  expression,
  isTranslated,
  isUntranslated,
  loadImmediate,
  loadMeta,
  loadPayload,
  nativeU16,
  nativeU32,
  nativeU64,
  networkU16,
  notrack,
  ofProtocol,
  setTracked,
} from "../../kernel/nft-expressions.ts";
import { NftTable } from "../../kernel/nft-table.ts";
import { LOOPBACK_INDEX } from "../../kernel/rtnetlink-constants.ts";
import { type Action, type IpFamily, type Match, type Protocol, TABLE_NAME, type TablePlan } from "./plan.ts";

export const PROTOCOL_NUMBER: Record<Protocol, number> = { udp: 17, tcp: 6 };
export const FAMILY_NUMBER: Record<IpFamily, number> = { ip: NFPROTO_IPV4, ip6: NFPROTO_IPV6 };
/** Offset and length of the addresses in the IP header. */
export const ADDRESSES = {
  ip: { source: 12, destination: 16, length: 4 },
  ip6: { source: 8, destination: 24, length: 16 },
} as const;
const LOOPBACK_FIRST_OCTET = 127;
/** linux/netfilter/xt_string.h */
const STRING_MATCH_REVISION = 1;
const STRING_MATCH_BYTES_MAX = 128;
const STRING_MATCH_SIZE = 160;
const STRING_MATCH_INVERTS = 1;
const STRING_MATCH_IGNORES_CASE = 2;
const SOURCE_PORT_OFFSET = 0;
const DESTINATION_PORT_OFFSET = 2;

/** Creates permanent tables, with a comment that identifies them. */
export function permanentCommands(plans: readonly TablePlan[], comment: string): NftCommand[] {
  return plans.flatMap((plan) => [tableOf(plan).create(0, comment), ...contents(plan)]);
}

/** Replaces the rules of the existing chains in one transaction, so that no query finds them missing. */
export function replaceRuleCommands(plans: readonly TablePlan[]): NftCommand[] {
  return plans.flatMap((plan) => [tableOf(plan).deleteRules(), ...rulesOf(plan)]);
}

/** Replaces whole tables, with their chains, in one transaction; owned tables belong to the socket that sends this. */
export function replaceTableCommands(
  families: Iterable<IpFamily>,
  plans: readonly TablePlan[],
  isOwned: boolean,
): NftCommand[] {
  return [
    ...[...families].map((family) => deleteCommand({ family, name: TABLE_NAME })),
    ...plans.flatMap((plan) => [tableOf(plan).create(isOwned ? nft.NFT_TABLE_F_OWNER : 0), ...contents(plan)]),
  ];
}

/** Deletes a table. The kernel refuses if another process owns it or if it does not exist. */
export function deleteCommand(table: Pick<TablePlan, "family" | "name">): NftCommand {
  return tableOf(table).delete();
}

function tableOf({ family, name }: Pick<TablePlan, "family" | "name">): NftTable {
  return new NftTable(FAMILY_NUMBER[family], name);
}

function contents(plan: TablePlan): NftCommand[] {
  const table = tableOf(plan);
  const chains = plan.chains.map(({ name, hook, priority, type }) =>
    table.chain(name, { number: nft.NF_HOOKS.indexOf(hook), priority, type }),
  );
  return [...chains, ...rulesOf(plan)];
}

function rulesOf(plan: TablePlan): NftCommand[] {
  const { family, chains } = plan;
  const table = tableOf(plan);
  return chains.flatMap(({ name, rules }) =>
    table.rules(
      name,
      rules.map(({ match, action }) => [matching(family, match), acting(family, action)]),
    ),
  );
}

function matching(family: IpFamily, match: Match): Rule {
  const { source, destination, length } = ADDRESSES[family];
  const rule: (Expression | Rule)[] = [];
  if (match.mark !== undefined) rule.push(loadMeta(nft.NFT_META_MARK), compare(nativeU32(match.mark)));
  if (match.interface !== undefined) rule.push(loadMeta(nft.NFT_META_IIF), compare(nativeU32(match.interface)));
  if (match.isFromOutside === true)
    rule.push(loadMeta(nft.NFT_META_IIF), compare(nativeU32(LOOPBACK_INDEX), nft.NFT_CMP_NEQ));
  if (match.protocol !== undefined) rule.push(ofProtocol(PROTOCOL_NUMBER[match.protocol]));
  if (match.source !== undefined) {
    rule.push(loadPayload({ base: nft.NETWORK_HEADER, offset: source, length }));
    rule.push(compare(bytesOf(match.source, family)));
  }
  if (match.destination !== undefined) {
    rule.push(loadPayload({ base: nft.NETWORK_HEADER, offset: destination, length }));
    rule.push(compare(bytesOf(match.destination, family)));
  }
  if (match.isToLoopback === true) {
    rule.push(loadPayload({ base: nft.NETWORK_HEADER, offset: destination, length: 1 }));
    rule.push(compare(Buffer.of(LOOPBACK_FIRST_OCTET)));
  }
  if (match.sourcePort !== undefined) {
    rule.push(loadPayload({ base: nft.TRANSPORT_HEADER, offset: SOURCE_PORT_OFFSET, length: 2 }));
    rule.push(compare(networkU16(match.sourcePort)));
  }
  if (match.destinationPort !== undefined) {
    rule.push(loadPayload({ base: nft.TRANSPORT_HEADER, offset: DESTINATION_PORT_OFFSET, length: 2 }));
    rule.push(compare(networkU16(match.destinationPort)));
  }
  if (match.controlGroup !== undefined) {
    const { id, level } = match.controlGroup;
    const load = expression("socket", (w) => {
      w.u32(nft.NFTA_SOCKET_KEY, nft.NFT_SOCKET_CGROUPV2);
      w.u32(nft.NFTA_SOCKET_DREG, nft.NFT_REG_1);
      w.u32(nft.NFTA_SOCKET_LEVEL, level);
    });
    rule.push(load, compare(nativeU64(id)));
  }
  if (match.bytes !== undefined) rule.push(matchString(match.bytes, STRING_MATCH_IGNORES_CASE));
  if (match.lacksBytes !== undefined)
    rule.push(matchString(match.lacksBytes, STRING_MATCH_IGNORES_CASE | STRING_MATCH_INVERTS));
  if (match.isDnat === true) rule.push(isTranslated);
  else if (match.isNotDnat === true) rule.push(isUntranslated);
  return rule;
}

function acting(family: IpFamily, action: Action): Rule {
  switch (action.kind) {
    case "accept":
      return [accept];
    case "drop":
      return [counter, drop];
    case "zone":
      return setTracked(nft.NFT_CT_ZONE, nativeU16(action.zone));
    case "notrack":
      return [notrack];
    case "dnat":
    case "snat":
      return translating(family, action);
  }
}

function translating(
  family: IpFamily,
  { kind, address, port }: Extract<Action, { kind: "dnat" | "snat" }>,
): Expression[] {
  const translate = expression("nat", (w) => {
    w.u32(nft.NFTA_NAT_TYPE, kind === "dnat" ? nft.NFT_NAT_DNAT : nft.NFT_NAT_SNAT);
    w.u32(nft.NFTA_NAT_FAMILY, FAMILY_NUMBER[family]);
    if (address !== undefined) w.u32(nft.NFTA_NAT_REG_ADDR_MIN, nft.NFT_REG_1);
    w.u32(nft.NFTA_NAT_REG_PROTO_MIN, nft.NFT_REG_2);
  });
  return [
    ...(address === undefined ? [] : [loadImmediate(bytesOf(address, family))]),
    loadImmediate(networkU16(port), nft.NFT_REG_2),
    translate,
  ];
}

/** struct xt_string_info: the whole packet is searched, in any letter case. */
function matchString(bytes: Uint8Array, flags: number): Expression {
  if (bytes.length > STRING_MATCH_BYTES_MAX) throw new RangeError(`Cannot match ${bytes.length} bytes`);
  const info = Buffer.alloc(STRING_MATCH_SIZE);
  info.writeUInt16LE(0xffff, 2);
  info.write("kmp", 4, "latin1");
  info.set(bytes, 20);
  info.writeUInt8(bytes.length, 148);
  info.writeUInt8(flags, 149);
  return expression("match", (w) => {
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
