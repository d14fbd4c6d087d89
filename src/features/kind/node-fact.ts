/**
 * NodeFact: the engine's facts about a KIND node and its networks, which determine the addresses that its pods can query.
 */
import { statSync } from "node:fs";
import type { Within } from "../../kernel/net-namespace.ts";
import type { ContainerFact, EndpointFact, NetworkFact } from "../../container/facts/fact.ts";
import { HOST_DOCKER_INTERNAL } from "../../container/names/host-name/host-name.ts";
import { type JoinedNetwork, inSearchOrder } from "../../container/names/docker/networks.ts";
import { isSameAddress } from "../../base/model/address.ts";
import type { NodeContext } from "../../container/names/source/name-source.ts";

/** One address per family, if there is one. */
export interface AddressPair {
  readonly ipv4: string | undefined;
  readonly ipv6: string | undefined;
}

export interface NodeFact {
  readonly containerId: string;
  readonly name: string;
  /** Different for each start of the container. */
  readonly startedAt: string;
  readonly sandboxKey: string;
  readonly pid: number;
  readonly resolvConfPath: string | undefined;
  /** KIND_DNS_SEARCH: the search list for its resolv.conf; empty for none. */
  readonly search: string | undefined;
  /** The gateway on the network that Docker prefers. */
  readonly gateway: AddressPair;
  /** The node's own addresses on that network. */
  readonly own: AddressPair;
  /** The node's addresses on all its networks. */
  readonly addresses: readonly string[];
  /** An id for each of its networks: another one when the node joins it again, and so has another interface there. */
  readonly joins: readonly string[];
  /** The address of the engine's host for containers. */
  readonly hostGateway: string | undefined;
}

export function nodeFactOf(
  fact: ContainerFact,
  networkOf: (id: string) => NetworkFact | undefined,
  hostGateway: string | undefined,
): NodeFact {
  const joined = fact.endpoints.flatMap((endpoint): JoinedNetwork[] => {
    const network = networkOf(endpoint.networkId);
    return network === undefined ? [] : [{ endpoint, network }];
  });
  const endpoints = inSearchOrder(joined).map(({ endpoint }) => endpoint);
  const first = (key: "ipv4" | "ipv6" | "ipv4Gateway" | "ipv6Gateway"): string | undefined =>
    endpoints.find((endpoint) => endpoint[key] !== undefined)?.[key];
  return {
    containerId: fact.id,
    name: fact.name,
    startedAt: fact.startedAt,
    sandboxKey: fact.sandboxKey,
    pid: fact.pid,
    resolvConfPath: fact.resolvConfPath,
    search: fact.kindSearch,
    gateway: { ipv4: first("ipv4Gateway"), ipv6: first("ipv6Gateway") },
    own: { ipv4: first("ipv4"), ipv6: first("ipv6") },
    addresses: endpoints.flatMap(addressesOf),
    joins: endpoints.map(({ endpointId }) => endpointId),
    hostGateway: hostEntryOf(fact) ?? hostGateway,
  };
}

/** What the user gave host.docker.internal with `--add-host`, IPv4 first. */
function hostEntryOf({ extraHosts }: ContainerFact): string | undefined {
  const addresses = extraHosts.filter(({ name }) => name === HOST_DOCKER_INTERNAL).map(({ address }) => address);
  return addresses.find((address) => !address.includes(":")) ?? addresses[0];
}

function addressesOf({ ipv4, ipv6 }: EndpointFact): string[] {
  return [ipv4, ipv6].filter((address) => address !== undefined);
}

/** Whether the node's first process is running in the namespace that `within` enters. */
export function isNodeRunning({ pid }: NodeFact, within: Within): boolean {
  try {
    return within(() => statSync("/proc/thread-self/ns/net").ino === statSync(`/proc/${pid}/ns/net`).ino);
  } catch {
    return false;
  }
}

interface NodeSituation extends Pick<NodeContext, "ownAddresses"> {
  /** The swarm networks that the node is on. */
  readonly swarmNetworks: readonly string[];
  /** Why the node is not served; undefined if it is. */
  readonly reason: string | undefined;
  readonly isNested: boolean;
}

/** What the pods of a KIND node do not get, although its container is set up for it or would be served. */
export function nodeWarnings(
  { nameservers }: Pick<ContainerFact, "nameservers">,
  { ownAddresses, swarmNetworks, reason, isNested }: NodeSituation,
): string[] {
  const whose = isNested ? "the containers inside it" : "its pods";
  const unserved = isNested ? `${whose} are not served` : "the pods of this KIND node are not served";
  if (reason !== undefined) return [`${unserved}: ${reason}`, ...ofServers()];
  return [...ofServers(), ...swarmNetworks.map((name) => ofSwarm(name, whose))];

  /** Nameservers that would be dns11 itself. */
  function ofServers(): string[] {
    const servers = nameservers.kind === "listed" ? nameservers.servers : [];
    return servers
      .filter(({ from, address }) => from === "container" && ownAddresses.some((own) => isSameAddress(own, address)))
      .map(({ address }) => `its nameserver ${address} is not used: ${whose} reach dns11 at that address`);
  }
}

/** Docker's resolver answers in the node's namespace only, and what it knows is not meant for pods. */
function ofSwarm(network: string, whose: string): string {
  return (
    `${whose} do not resolve services and other machines' containers of swarm network "${network}": ` +
    `connect the node to a network of this machine`
  );
}
