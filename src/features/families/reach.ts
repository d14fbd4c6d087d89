/**
 * Reach: which addresses a container can send to, by what the engine says of its networks. Routes that somebody has made inside of the
 * container are not looked for: they would be read for each answer, and whoever may make them could choose any.
 */
import { type AddressBlock, isInBlock, readAddressBlock } from "../../base/model/address.ts";
import type { ContainerFact, EndpointFact, NetworkFact } from "../../container/facts/fact.ts";

/** Those of one family: all, or what is in these blocks. */
type Given = "all" | readonly AddressBlock[];

export interface Reach {
  readonly ipv4: Given;
  readonly ipv6: Given;
}

type Family = keyof Reach;

const LOOPBACK: Readonly<Record<Family, AddressBlock>> = {
  ipv4: { bytes: Uint8Array.of(127, 0, 0, 0), prefix: 8 },
  ipv6: { bytes: Uint8Array.from({ length: 16 }, (_, index) => (index === 15 ? 1 : 0)), prefix: 128 },
};
const GATEWAYS = { ipv4: "ipv4Gateway", ipv6: "ipv6Gateway" } as const;

export const EVERYTHING: Reach = { ipv4: "all", ipv6: "all" };
export const ONLY: Readonly<Record<Family, Reach>> = {
  ipv4: { ipv4: "all", ipv6: [] },
  ipv6: { ipv4: [], ipv6: "all" },
};

/** Through a gateway all of a family; without one what is on a network of its own. What is not known is not left out. */
export function reachOf(
  { endpoints, isUndescribed }: ContainerFact,
  networkOf: (id: string) => NetworkFact | undefined,
): Reach {
  if (isUndescribed === true || endpoints.length === 0) return EVERYTHING;
  const of = (family: Family): Given => {
    const blocks = [LOOPBACK[family]];
    for (const endpoint of endpoints) {
      const given = givenBy(endpoint, networkOf(endpoint.networkId), family);
      if (given === "all") return given;
      blocks.push(...given);
    }
    return blocks;
  };
  return { ipv4: of("ipv4"), ipv6: of("ipv6") };
}

function givenBy(endpoint: EndpointFact, network: NetworkFact | undefined, family: Family): Given {
  if (network === undefined) return "all";
  const { driver, isInternal, swarm, addressBlocks } = network;
  // Docker gives its containers an interface on docker_gwbridge, which no inspect shows.
  if (swarm !== undefined && !isInternal && family === "ipv4") return "all";
  if (!isInternal && endpoint[GATEWAYS[family]] !== undefined) return "all";
  if (endpoint[family] === undefined) return [];
  const subnets = driver === "bridge" ? addressBlocks : swarm?.subnets;
  return subnets === undefined ? "all" : subnets.flatMap((text) => readAddressBlock(text) ?? []);
}

/** Four or sixteen bytes. */
export function isGiven(address: Uint8Array, reach: Reach): boolean {
  const given = address.length === 4 ? reach.ipv4 : reach.ipv6;
  return given === "all" || given.some((block) => isInBlock(address, block));
}

/** The families of which some are left out. */
export function leftOut({ ipv4, ipv6 }: Reach): readonly string[] {
  return [...(ipv4 === "all" ? [] : ["IPv4"]), ...(ipv6 === "all" ? [] : ["IPv6"])];
}

/** The same for all that give the same. */
export function reachKey(reach: Reach): string {
  return JSON.stringify(reach, (_, value: unknown) => (value instanceof Uint8Array ? [...value] : value));
}
