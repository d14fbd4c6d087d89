/**
 * PortRedirects: foreign rules that redirect a port, such as those of a pod's hostPort. If we captured that port, their
 * target would no longer receive its packets. Rules of iptables-legacy are not read.
 */
import { codeOf } from "../../base/lib/fault.ts";
import { inSlices, ownSlice } from "../../base/lib/slices.ts";
import { LIMITS } from "../../base/limits.ts";
import { attributeList, attributesIn, textOf } from "../../kernel/netlink-message.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { NftSocket, visitFirst } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import { TABLE_NAME } from "./plan.ts";

/** The chain and table in which Docker and KIND redirect port 53 to Docker's resolver. */
export const DOCKER_CHAIN = "DOCKER_OUTPUT";
export const DOCKER_TABLE = "docker-dns";
const DESTINATION_PORT_OFFSET = 2;

const RULES = { command: nft.NFT_MSG_GETRULE, family: 0 };

/** The chains with foreign rules that redirect the port, each as `table chain`. Call inside the namespace. */
export function chainsRedirecting(memory: NetlinkMemory, port: number): string[] {
  const chains = new Set<string>();
  visitFirst(memory, RULES, (_, bytes) => noteRedirect(chains, bytes, port));
  return [...chains];
}

/** The same from the first rules; `isComplete` if these were all. */
export function firstChainsRedirecting(memory: NetlinkMemory, port: number): { chains: string[]; isComplete: boolean } {
  const chains = new Set<string>();
  let count = 0;
  const isComplete = visitFirst(memory, { ...RULES, isBeginning: true }, (_, bytes) => {
    noteRedirect(chains, bytes, port);
    return ++count <= LIMITS.redirectRulesAtOnce;
  });
  return { chains: [...chains], isComplete: isComplete && count <= LIMITS.redirectRulesAtOnce };
}

/** Reads all rules, in slices, also after the thread has left the namespace. Call inside the namespace. */
export async function allChainsRedirecting(memory: NetlinkMemory, port: number): Promise<readonly string[]> {
  const socket = new NftSocket(memory);
  const chains = new Set<string>();
  try {
    // The caller has read the beginning in this round.
    await ownSlice();
    await inSlices(
      socket.findInParts(RULES, (_, bytes) => noteRedirect(chains, bytes, port)),
      1,
    );
  } catch (error) {
    // What has been found so far is better than nothing.
    if (codeOf(error) !== "TOO_MANY") throw error;
  } finally {
    socket.close();
  }
  return [...chains];
}

function noteRedirect(chains: Set<string>, bytes: Buffer, port: number): void {
  // Nearly all rules lack the port, as a value to compare with: to parse them would take most of the time.
  if (!bytes.includes(Buffer.of(6, 0, nft.NFTA_DATA_VALUE, 0, port >> 8, port & 0xff))) return;
  const attributes = attributesIn(bytes);
  const table = textOf(attributes.get(nft.NFTA_RULE_TABLE));
  const chain = textOf(attributes.get(nft.NFTA_RULE_CHAIN));
  if (table === TABLE_NAME || table === DOCKER_TABLE || chain === DOCKER_CHAIN) return;
  const expressions = attributeList(attributes.get(nft.NFTA_RULE_EXPRESSIONS) ?? Buffer.alloc(0));
  const read = expressions.map(([, expression]) => expressionOf(expression));
  if (redirectsPort(read, port)) chains.add(`${table} ${chain}`);
}

interface Expression {
  readonly name: string;
  readonly data: ReadonlyMap<number, Buffer>;
}

function expressionOf(bytes: Buffer): Expression {
  const attributes = attributesIn(bytes);
  const data = attributes.get(nft.NFTA_EXPR_DATA) ?? Buffer.alloc(0);
  return { name: textOf(attributes.get(nft.NFTA_EXPR_NAME)), data: attributesIn(data) };
}

function redirectsPort(expressions: readonly Expression[], port: number): boolean {
  return expressions.some((_, index) => matchesPort(expressions.slice(index), port)) && expressions.some(isDnat);
}

/** Whether the first two expressions load the destination port and compare it with `port`. */
function matchesPort([load, compare]: readonly Expression[], port: number): boolean {
  if (load?.name !== "payload" || compare?.name !== "cmp") return false;
  const isPort =
    load.data.get(nft.NFTA_PAYLOAD_BASE)?.readUInt32BE(0) === nft.TRANSPORT_HEADER &&
    load.data.get(nft.NFTA_PAYLOAD_OFFSET)?.readUInt32BE(0) === DESTINATION_PORT_OFFSET;
  const value = attributesIn(compare.data.get(nft.NFTA_CMP_DATA) ?? Buffer.alloc(0)).get(nft.NFTA_DATA_VALUE);
  return isPort && value?.length === 2 && value.readUInt16BE(0) === port;
}

function isDnat({ name, data }: Expression): boolean {
  if (name === "nat") return data.get(nft.NFTA_NAT_TYPE)?.readUInt32BE(0) === nft.NFT_NAT_DNAT;
  return name === "target" && textOf(data.get(nft.NFTA_TARGET_NAME)) === "DNAT";
}
