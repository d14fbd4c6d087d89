/**
 * NodeWarnings: what the pods of a KIND node do not get, although its container is set up for it or would be served.
 */
import { isSameAddress } from "../../base/model/address.ts";
import type { NodeContext } from "../names/source/name-source.ts";
import type { ContainerFact } from "../facts/fact.ts";

interface NodeSituation extends Pick<NodeContext, "ownAddresses"> {
  /** The swarm networks that the node is on. */
  readonly swarmNetworks: readonly string[];
  /** Why the node is not served; undefined if it is. */
  readonly reason: string | undefined;
  readonly isNested: boolean;
}

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
