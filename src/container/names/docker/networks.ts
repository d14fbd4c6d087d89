/**
 * DockerNetworks: the names of all of Docker's networks, and which of them a container may ask. A change costs what
 * changed: the names of one container on its networks.
 */
import { folded } from "../../../base/dns/name.ts";
import { hashOf } from "../../../base/model/label-table.ts";
import type { ContainerFact, EndpointFact, NetworkFact } from "../../registry/fact.ts";
import type { NameSource } from "../name-source.ts";
import { nameKey, spelledLabels } from "./docker-name.ts";
import { DockerNames, type ContainerLink, type VisibleNetwork } from "./docker-names.ts";
import { NetworkNames } from "./network-names.ts";
import { type JoinedNetwork, inSearchOrder } from "./search-order.ts";

interface KnownNetwork {
  readonly fact: NetworkFact;
  readonly names: NetworkNames;
  readonly suffix: Uint8Array | undefined;
}

export class DockerNetworks implements NameSource {
  readonly #networks = new Map<string, KnownNetwork>();

  fact(id: string): NetworkFact | undefined {
    return this.#networks.get(id)?.fact;
  }

  put(fact: NetworkFact): void {
    if (this.#networks.has(fact.id)) return;
    const names = new NetworkNames(fact.name);
    this.#networks.set(fact.id, { fact, names, suffix: spelledLabels(fact.name) });
  }

  remove(id: string): void {
    this.#networks.delete(id);
  }

  /** A container is where its facts say, and no longer where those of before said. */
  join(fact: ContainerFact, before: ContainerFact | undefined): void {
    const stays = new Set(fact.endpoints.map(({ networkId }) => networkId));
    for (const { networkId } of before?.endpoints ?? []) if (!stays.has(networkId)) this.#withdraw(fact.id, networkId);
    for (const endpoint of fact.endpoints) this.#networks.get(endpoint.networkId)?.names.put(fact.id, endpoint);
  }

  leave({ id, endpoints }: ContainerFact): void {
    for (const { networkId } of endpoints) this.#withdraw(id, networkId);
  }

  /** The networks that a container is on, in the order in which they are asked. */
  joinedBy({ endpoints }: ContainerFact): JoinedNetwork[] {
    const joined = endpoints.flatMap((endpoint): JoinedNetwork[] => {
      const network = this.fact(endpoint.networkId);
      return network === undefined ? [] : [{ endpoint, network }];
    });
    return inSearchOrder(joined);
  }

  namesFor(container: ContainerFact): DockerNames {
    return new DockerNames(this.joinedBy(container).flatMap(({ endpoint }) => this.#seen(endpoint)));
  }

  #withdraw(id: string, networkId: string): void {
    this.#networks.get(networkId)?.names.remove(id);
  }

  #seen({ networkId, links }: EndpointFact): VisibleNetwork[] {
    const network = this.#networks.get(networkId);
    if (network === undefined) return [];
    const { fact, names, suffix } = network;
    const { id, name } = fact;
    return [{ id, name, suffix, suffixFolded: suffix && folded(suffix), names, links: linksOf(links) }];
  }
}

/** The last link of an alias counts. */
function linksOf(texts: readonly string[]): ContainerLink[] {
  const targets = new Map(texts.map((text) => linkParts(text)));
  return [...targets].map(([aliasText, targetText]) => {
    const alias = spelledLabels(aliasText);
    // Docker takes a dot at the end of what it looks up for the root's.
    const target = nameKey(targetText.replace(/\.$/, ""));
    return { alias, aliasFolded: alias && folded(alias), target, targetHash: hashOf(target) };
  });
}

/** Alias and target of `target:alias`; without an alias the target is its own. */
function linkParts(text: string): [string, string] {
  const colon = text.indexOf(":");
  if (colon === -1) return [text, text];
  const [target, alias] = [text.slice(0, colon), text.slice(colon + 1)];
  // As engines once told links, and still take them: `/target:/container/alias`.
  return target.startsWith("/") ? [alias.slice(alias.lastIndexOf("/") + 1), target.slice(1)] : [alias, target];
}
