/**
 * AddressOwners: the containers that have the addresses of an answer, because an address alone tells nobody where a name
 * led.
 */
import type { AddressOwner } from "../../api/owners.ts";
import type { SwarmPlace } from "../../base/model/swarm-place.ts";
import type { KnownContainer } from "../causes/known-container.ts";
import type { KnownContainers } from "../causes/known-containers.ts";

/** The addresses among the records of an answer. */
export function addressesIn(answers: readonly { readonly type: string; readonly data: string }[]): string[] {
  return answers.filter(({ type }) => type === "A" || type === "AAAA").map(({ data }) => data);
}

/** Finds the service or task of the swarm that has an address, if no container of this engine has it. */
type ElsewhereOf = (address: string) => SwarmPlace | undefined;

/**
 * Networks may have the same subnet: those of the client come first, and before containers of other networks what other
 * machines have on those. An address without a container has no owner.
 */
export function ownersOf(
  addresses: readonly string[],
  known: KnownContainers,
  client: KnownContainer | undefined,
  elsewhereOf: ElsewhereOf = () => undefined,
): AddressOwner[] {
  const own = new Set(client?.endpoints.map(({ networkName }) => networkName));
  return addresses.flatMap((address) => {
    const places = known.withAddress(address);
    const near = places.find(({ endpoint }) => own.has(endpoint.networkName));
    const swarm = near === undefined ? elsewhereOf(address) : undefined;
    if (swarm !== undefined) {
      const { name: container, network, service } = swarm;
      return [{ address, container, network, project: null, service, swarm }];
    }
    const place = near ?? places[0];
    if (place === undefined) return [];
    const { container, endpoint } = place;
    return [
      {
        address,
        container: container.name,
        network: endpoint.networkName,
        project: container.compose?.project ?? null,
        service: container.compose?.service ?? null,
      },
    ];
  });
}
