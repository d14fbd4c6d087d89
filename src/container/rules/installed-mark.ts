/**
 * InstalledMark: the mark by which packets pass our rules in a namespace to Docker's resolver, read from these rules, for a program that
 * is not the one that made them.
 */
import { attributeList, attributesIn, textOf } from "../../kernel/netlink-message.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import * as nft from "../../kernel/nft-constants.ts";
import { visitRulesOf } from "./installed-rules.ts";

const MARK_BYTES = 4;

/** Call inside the namespace. Undefined if no mark alone passes: without rules, and where a policy is enforced. */
export function installedMark(memory: NetlinkMemory): number | undefined {
  let mark: number | undefined;
  let isFirst = true;
  visitRulesOf(memory, "ip", "query", (attributes) => {
    if (isFirst) mark = markIn(attributeList(attributes.get(nft.NFTA_RULE_EXPRESSIONS) ?? Buffer.alloc(0)));
    isFirst = false;
  });
  return mark;
}

/** It loads the mark, compares it, and has its verdict. */
function markIn(expressions: ReturnType<typeof attributeList>): number | undefined {
  const [load, compare, verdict, ...more] = expressions.map(([, each]) => attributesIn(each));
  if (load === undefined || compare === undefined || verdict === undefined || more.length > 0) return undefined;
  if (textOf(load.get(nft.NFTA_EXPR_NAME)) !== "meta") return undefined;
  const key = dataOf(load).get(nft.NFTA_META_KEY);
  if (key?.readUInt32BE(0) !== nft.NFT_META_MARK) return undefined;
  const value = attributesIn(dataOf(compare).get(nft.NFTA_CMP_DATA) ?? Buffer.alloc(0)).get(nft.NFTA_DATA_VALUE);
  return value?.length === MARK_BYTES ? value.readUInt32LE(0) : undefined;
}

function dataOf(expression: ReadonlyMap<number, Buffer>): ReadonlyMap<number, Buffer> {
  return attributesIn(expression.get(nft.NFTA_EXPR_DATA) ?? Buffer.alloc(0));
}
