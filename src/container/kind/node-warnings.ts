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
}

export function nodeWarnings(
  { nameservers }: Pick<ContainerFact, "nameservers">,
  { ownAddresses, swarmNetworks, reason }: NodeSituation,
): string[] {
  if (reason !== undefined) return [`the pods of this KIND node are not served: ${reason}`, ...ofServers()];
  return [...ofServers(), ...swarmNetworks.map((name) => ofSwarm(name))];

  /** Nameservers that would be dns11 itself. */
  function ofServers(): string[] {
    const servers = nameservers.kind === "listed" ? nameservers.servers : [];
    return servers
      .filter(({ from, address }) => from === "container" && ownAddresses.some((own) => isSameAddress(own, address)))
      .map(({ address }) => `its nameserver ${address} is not used: its pods reach dns11 at that address`);
  }
}

/** Docker's resolver answers in the node's namespace only, and what it knows is not meant for pods. */
function ofSwarm(network: string): string {
  return (
    `its pods do not resolve services and other machines' containers of swarm network "${network}": ` +
    `connect the node to a network of this machine`
  );
}
