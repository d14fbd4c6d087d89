/**
 * DockerRedirects: the rules of Docker, or KIND's entrypoint's version of them, that redirect port 53 to Docker's
 * resolver, in any of the three forms that engines write. Only these rules are read: a cluster node has thousands of
 * others.
 */
import { gatherInSlices } from "../../base/lib/slices.ts";
import { dnatPort, eachLegacyRule } from "../../kernel/legacy-rules.ts";
import { type NetlinkWriter, attributeList, attributesIn, textOf } from "../../kernel/netlink-message.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { NFPROTO_IPV4, visitFirst } from "../../kernel/nfnetlink.ts";
import * as nft from "../../kernel/nft-constants.ts";
import type { Xtables } from "../../kernel/xtables.ts";
import type { Protocol } from "./plan.ts";
import { DOCKER_CHAIN, DOCKER_TABLE } from "./port-redirects.ts";

/** A rule that redirects DNS queries for an address to a port of 127.0.0.11. */
export interface DockerRedirect {
  readonly destination: string;
  readonly protocol: Protocol;
  readonly port: number;
}

const PROTOCOLS = new Map<number, Protocol>([
  [6, "tcp"],
  [17, "udp"],
]);
const DESTINATION_OFFSET = 16;
const DESTINATION_BYTES = 4;

/** Those in nf_tables, in the order in which they apply, before those of iptables-legacy. Call inside the namespace. */
export function dockerRedirects(memory: NetlinkMemory): DockerRedirect[] {
  const redirects: DockerRedirect[] = [];
  const visit = (_: number, bytes: Buffer): void => {
    const redirect = redirectIn(attributesIn(bytes).get(nft.NFTA_RULE_EXPRESSIONS));
    if (redirect !== undefined) redirects.push(redirect);
  };
  for (const select of [selectIptablesChain, selectDockerTable]) {
    visitFirst(memory, { command: nft.NFT_MSG_GETRULE, family: NFPROTO_IPV4, select }, visit);
  }
  return redirects;
}

/** Those in the IPv4 tables of iptables-legacy. A node may have 25,000 other rules there. */
export async function legacyRedirects(tables: Xtables | undefined): Promise<DockerRedirect[]> {
  return await gatherInSlices(eachLegacyRedirect(tables));
}

function* eachLegacyRedirect(tables: Xtables | undefined): Generator<DockerRedirect | undefined> {
  for (const { chain, protocol, destination, dnatPort: port } of eachLegacyRule(tables, "nat")) {
    const isRedirect = chain === DOCKER_CHAIN && port !== undefined && (protocol === "udp" || protocol === "tcp");
    yield isRedirect ? { destination, protocol, port } : undefined;
  }
}

function selectIptablesChain(writer: NetlinkWriter): void {
  writer.text(nft.NFTA_RULE_TABLE, "nat");
  writer.text(nft.NFTA_RULE_CHAIN, DOCKER_CHAIN);
}

function selectDockerTable(writer: NetlinkWriter): void {
  writer.text(nft.NFTA_RULE_TABLE, DOCKER_TABLE);
}

function redirectIn(list: Buffer | undefined): DockerRedirect | undefined {
  let destination: string | undefined;
  let protocol: Protocol | undefined;
  let port: number | undefined;
  let loaded: "address" | "other" = "other";
  const registers = new Map<number, Buffer>();
  for (const [, bytes] of attributeList(list ?? Buffer.alloc(0))) {
    const expression = attributesIn(bytes);
    const data = attributesIn(expression.get(nft.NFTA_EXPR_DATA) ?? Buffer.alloc(0));
    switch (textOf(expression.get(nft.NFTA_EXPR_NAME))) {
      case "payload":
        loaded = isDestination(data) ? "address" : "other";
        break;
      case "cmp": {
        const value = valueIn(data.get(nft.NFTA_CMP_DATA));
        if (loaded === "address" && value?.length === DESTINATION_BYTES) destination = [...value].join(".");
        if (value?.length === 1) protocol = PROTOCOLS.get(value.readUInt8(0)) ?? protocol;
        break;
      }
      case "immediate": {
        const value = valueIn(data.get(nft.NFTA_IMMEDIATE_DATA));
        if (value !== undefined) registers.set(numberIn(data.get(nft.NFTA_IMMEDIATE_DREG)), value);
        break;
      }
      case "nat":
        port = portIn(registers.get(numberIn(data.get(nft.NFTA_NAT_REG_PROTO_MIN))));
        if (numberIn(data.get(nft.NFTA_NAT_TYPE)) !== nft.NFT_NAT_DNAT) port = undefined;
        break;
      case "target":
        if (textOf(data.get(nft.NFTA_TARGET_NAME)) !== "DNAT") break;
        port = dnatPort(numberIn(data.get(nft.NFTA_TARGET_REV)), data.get(nft.NFTA_TARGET_INFO) ?? Buffer.alloc(0));
    }
  }
  return destination === undefined || protocol === undefined || port === undefined
    ? undefined
    : { destination, protocol, port };
}

function isDestination(payload: ReadonlyMap<number, Buffer>): boolean {
  return (
    numberIn(payload.get(nft.NFTA_PAYLOAD_BASE)) === nft.NETWORK_HEADER &&
    numberIn(payload.get(nft.NFTA_PAYLOAD_OFFSET)) === DESTINATION_OFFSET &&
    numberIn(payload.get(nft.NFTA_PAYLOAD_LEN)) === DESTINATION_BYTES
  );
}

function valueIn(data: Buffer | undefined): Buffer | undefined {
  return data && attributesIn(data).get(nft.NFTA_DATA_VALUE);
}

function numberIn(value: Buffer | undefined): number {
  return value?.length === 4 ? value.readUInt32BE(0) : -1;
}

function portIn(value: Buffer | undefined): number | undefined {
  return value === undefined || value.length < 2 ? undefined : value.readUInt16BE(0);
}
