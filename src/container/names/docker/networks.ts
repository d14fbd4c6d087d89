/**
 * DockerNetworks: the container names of all Docker networks, and which networks each container can resolve. A change
 * only touches the names of one container on its networks.
 */
import { folded } from "../../../base/dns/name.ts";
import { reverseLabels } from "../../../base/model/address.ts";
import { hashOf } from "../../../base/model/label-table.ts";
import type { LabelPolicy } from "../../../base/model/name-choices.ts";
import { projectOf } from "../../facts/compose.ts";
import type { ContainerFact, EndpointFact, NetworkFact } from "../../facts/fact.ts";
import type { NameSource, NamedContainer } from "../source/name-source.ts";
import { nameKey, spelledLabels } from "./docker-name.ts";
import { DockerNames, type ContainerLink, type VisibleNetwork } from "./docker-names.ts";
import { NetworkNames } from "./network-names.ts";

interface KnownNetwork {
  readonly fact: NetworkFact;
  readonly names: NetworkNames;
  /** A container without links sees it so. */
  readonly visible: VisibleNetwork;
}

const NO_NETWORKS: readonly KnownNetwork[] = [];

export class DockerNetworks implements NameSource {
  readonly #networks = new Map<string, KnownNetwork>();
  /** By the length of their names on the wire, so that NAME.NETWORK is compared with few of many networks. */
  readonly #bySuffixLength = new Map<number, readonly KnownNetwork[]>();
  readonly #labels: LabelPolicy;

  /** `labels`: whose labels count. */
  constructor(labels: LabelPolicy) {
    this.#labels = labels;
  }

  fact(id: string): NetworkFact | undefined {
    return this.#networks.get(id)?.fact;
  }

  putNetwork(fact: NetworkFact): void {
    if (this.#networks.has(fact.id)) return;
    const names = new NetworkNames(fact.name);
    const network = { fact, names, visible: visibleNetwork(fact, names) };
    this.#networks.set(fact.id, network);
    const length = suffixLength(network);
    this.#bySuffixLength.set(length, [...this.withSuffixOf(length), network]);
  }

  removeNetwork(id: string): void {
    const network = this.#networks.get(id);
    if (network === undefined) return;
    this.#networks.delete(id);
    const length = suffixLength(network);
    const others = this.withSuffixOf(length).filter((each) => each !== network);
    if (others.length === 0) this.#bySuffixLength.delete(length);
    else this.#bySuffixLength.set(length, others);
  }

  /** Its name as the suffix of NAME.NETWORK. */
  suffixOf(id: string): Uint8Array | undefined {
    return this.#networks.get(id)?.visible.suffixFolded;
  }

  all(): Iterable<KnownNetwork> {
    return this.#networks.values();
  }

  /** Whether a container has an address on a network of this name. */
  hasAddress(networkName: string, address: Uint8Array): boolean {
    const labels = reverseLabels(address);
    const hash = hashOf(labels);
    for (const { fact, names } of this.all())
      if (fact.name === networkName && names.pointer(labels, labels.length, hash) !== undefined) return true;
    return false;
  }

  /** The networks whose names have this length on the wire. */
  withSuffixOf(length: number): readonly KnownNetwork[] {
    return this.#bySuffixLength.get(length) ?? NO_NETWORKS;
  }

  /** Puts a container's names on its current networks and removes them from those that it has left. */
  join({ fact, before, traits, project }: NamedContainer): void {
    const current = new Set(fact.endpoints.map(({ networkId }) => networkId));
    for (const { networkId } of before?.endpoints ?? [])
      if (!current.has(networkId)) this.#removeFrom(fact.id, networkId);
    for (const endpoint of fact.endpoints) {
      const network = this.#networks.get(endpoint.networkId);
      // Docker gives no names there.
      if (network?.fact.swarm?.isIngress !== true) network?.names.put(fact.id, { ...endpoint, ...traits, project });
    }
  }

  leave({ id, endpoints }: ContainerFact): void {
    for (const { networkId } of endpoints) this.#removeFrom(id, networkId);
  }

  /** The networks of a container, in search order. */
  joinedBy({ endpoints }: ContainerFact): JoinedNetwork[] {
    const joined = endpoints.flatMap((endpoint): JoinedNetwork[] => {
      const network = this.fact(endpoint.networkId);
      return network === undefined ? [] : [{ endpoint, network }];
    });
    return inSearchOrder(joined);
  }

  /** Those of a container on which other machines have names, too, that only Docker's resolver knows. */
  acrossMachines(container: ContainerFact): NetworkFact[] {
    return this.joinedBy(container).flatMap(({ network }) => (network.swarm?.isIngress === false ? network : []));
  }

  namesFor(container: ContainerFact): DockerNames {
    const networks = this.joinedBy(container).flatMap(({ endpoint }) => this.#visible(endpoint));
    return new DockerNames(networks, { id: container.id, project: projectOf(container, this.#labels) });
  }

  #removeFrom(id: string, networkId: string): void {
    this.#networks.get(networkId)?.names.remove(id);
  }

  #visible({ networkId, links }: EndpointFact): VisibleNetwork[] {
    const network = this.#networks.get(networkId);
    if (network === undefined) return [];
    return [{ ...network.visible, links: linksOf(links) }];
  }
}

/** A network as a container with these links sees it. */
export function visibleNetwork(
  { id, name, apartBy }: Pick<NetworkFact, "id" | "name" | "apartBy">,
  names: NetworkNames,
  links: readonly string[] = [],
): VisibleNetwork {
  const suffix = spelledLabels(name);
  return { id, name, suffix, suffixFolded: suffix && folded(suffix), names, links: linksOf(links), apartBy };
}

function suffixLength({ visible }: KnownNetwork): number {
  return visible.suffix?.length ?? 0;
}

/** Of several links with one alias the last applies. */
function linksOf(texts: readonly string[]): ContainerLink[] {
  const targets = new Map(texts.map((text) => linkParts(text)));
  return [...targets].map(([aliasText, targetText]) => {
    const alias = spelledLabels(aliasText);
    // Docker ignores a trailing dot of a link's target.
    const target = nameKey(targetText.replace(/\.$/, ""));
    return { alias, aliasFolded: alias && folded(alias), target, targetHash: hashOf(target) };
  });
}

/** Alias and target of `target:alias`; without an alias the target is the alias, too. */
function linkParts(text: string): [string, string] {
  const colon = text.indexOf(":");
  if (colon === -1) return [text, text];
  const [target, alias] = [text.slice(0, colon), text.slice(colon + 1)];
  // The form that old engines reported, and engines still accept: `/target:/container/alias`.
  return target.startsWith("/") ? [alias.slice(alias.lastIndexOf("/") + 1), target.slice(1)] : [alias, target];
}

/**
 * The order in which a container's networks are searched, which decides between several networks that have
 * a name. It is the order in which Docker sorts the endpoints of a sandbox.
 */
export interface JoinedNetwork {
  readonly endpoint: EndpointFact;
  readonly network: NetworkFact;
}

/** Higher gateway priority first, internal networks last, more gateways first, then by the bytes of the name. */
export function inSearchOrder(joined: readonly JoinedNetwork[]): JoinedNetwork[] {
  return joined.toSorted(
    (a, b) =>
      b.endpoint.gatewayPriority - a.endpoint.gatewayPriority ||
      Number(a.network.isInternal) - Number(b.network.isInternal) ||
      gateways(b.endpoint) - gateways(a.endpoint) ||
      Buffer.compare(Buffer.from(a.network.name), Buffer.from(b.network.name)),
  );
}

function gateways({ ipv4Gateway, ipv6Gateway }: EndpointFact): number {
  return Number(ipv4Gateway !== undefined) + Number(ipv6Gateway !== undefined);
}
