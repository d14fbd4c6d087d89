/**
 * NameHolders: the containers that have a name, and how a list of names shows them.
 */
import type { ListedName, NameOwner } from "../../api/name-list.ts";
import type { KnownContainer, KnownEndpoint } from "../causes/known-container.ts";

/** One container's claim to a name. */
export interface Holder {
  readonly container: KnownContainer;
  /** undefined for a container on no network with names. */
  readonly endpoint: KnownEndpoint | undefined;
}

/** Docker makes so much of the ID a name. */
const SHORT_ID_LENGTH = 12;

export function holdersOf(container: KnownContainer): Holder[] {
  return container.endpoints.map((endpoint) => ({ container, endpoint }));
}

/** The name on each network, without regard to who asks. */
export function byNetwork(name: string, holders: readonly Holder[]): ListedName[] {
  const networks = new Map<string | null, Holder[]>();
  for (const holder of holders) {
    const network = holder.endpoint?.networkName ?? null;
    networks.set(network, [...(networks.get(network) ?? []), holder]);
  }
  return [...networks].map(([network, all]) => {
    const running = all.filter(({ container }) => container.ended === undefined);
    const state = running.length === 0 ? "not-running" : network === null ? "no-network" : "resolves";
    return { ...listedName(name, network, running.length === 0 ? all : running), state };
  });
}

export function listedName(
  name: string,
  network: string | null,
  holders: readonly Holder[],
): Omit<ListedName, "state"> {
  const owners = holders.map(ownerOf);
  return {
    name,
    network,
    addresses: [...new Set(owners.flatMap(({ addresses }) => addresses))],
    owners,
    isId:
      owners.length > 0 &&
      name.length === SHORT_ID_LENGTH &&
      owners.every(({ containerId }) => containerId.startsWith(name)),
  };
}

function ownerOf({ container, endpoint }: Holder): NameOwner {
  const { project = null, service = null } = container.compose ?? {};
  const addresses = endpoint === undefined ? [] : addressesOf(endpoint);
  return { container: container.name, containerId: container.id, project, service, addresses };
}

export function addressesOf({ ipv4, ipv6 }: KnownEndpoint): string[] {
  return [ipv4, ipv6].filter((each) => each !== undefined);
}
