/**
 * DockerNames: resolves a name as Docker does for one container. The whole name is tried on every network, then as
 * NAME.NETWORK with an ever longer network name. At each step links come before names and networks are in Docker's
 * order. The first hit ends the search: answers of several networks are never merged.
 */
import { LOCAL_SOURCE, type LocalSource } from "../../../base/model/local-source.ts";
import { sameBytes } from "../../../base/dns/name.ts";
import type { Behaviour } from "../../../base/model/behaviour.ts";
import {
  type QuestionName,
  MISS,
  type NameAddresses,
  type NameSearch,
  type VisibleNames,
  type ReverseName,
} from "../../../base/model/visible-names.ts";
import type { NetworkNames } from "./network-names.ts";
import { SearchTrace } from "./search-trace.ts";

/** A `--link target:alias` on one network: this container's own alias for another container. */
export interface ContainerLink {
  /** Wire labels of the alias as typed, and in lower case; undefined if no query can spell it. */
  readonly alias: Uint8Array | undefined;
  readonly aliasFolded: Uint8Array | undefined;
  /** Lower-case wire labels of the target, and their hash. */
  readonly target: Uint8Array | undefined;
  readonly targetHash: number;
}

export interface VisibleNetwork {
  readonly id: string;
  readonly name: string;
  /** Wire labels of the network's name as it is, and in lower case: the suffix of NAME.NETWORK. */
  readonly suffix: Uint8Array | undefined;
  readonly suffixFolded: Uint8Array | undefined;
  readonly names: NetworkNames;
  readonly links: readonly ContainerLink[];
}

export class DockerNames implements VisibleNames {
  readonly kind: LocalSource;
  readonly #networks: readonly VisibleNetwork[];
  readonly #project: string | undefined;

  /** `networks` in search order; `project` is the container's own. */
  constructor(networks: readonly VisibleNetwork[], project?: string, kind: LocalSource = LOCAL_SOURCE.network) {
    this.kind = kind;
    this.#networks = networks;
    this.#project = project;
  }

  get places(): readonly string[] {
    return this.#networks.map(({ name }) => name);
  }

  find(name: QuestionName, search: NameSearch): number {
    const trace = search.trace === undefined ? undefined : new SearchTrace(search.trace);
    const whole = this.#search(name, search.behaviour, name.labelCount, false, trace);
    if (whole !== undefined) return this.#found(search, whole, false, trace);
    for (let labels = name.labelCount - 1; labels > 0; labels--) {
      const hit = this.#search(name, search.behaviour, labels, true, trace);
      // A name with a network's name cannot exist upstream.
      if (hit !== undefined) return this.#found(search, hit, true, trace);
    }
    trace?.end();
    return MISS;
  }

  /** Addresses of containers on this container's networks have names; gateways, hosts and anything else have none. */
  pointer(labels: Uint8Array, length: number, hash: number, behaviour: Behaviour): ReverseName | undefined {
    for (const network of this.#networks) {
      const pointer = network.names.pointer(labels, length, hash);
      if (pointer !== undefined && (!pointer.missingInDocker || behaviour.reversesAllIpv6)) return pointer;
    }
    return undefined;
  }

  #found(search: NameSearch, addresses: NameAddresses, isQualified: boolean, trace: SearchTrace | undefined): number {
    trace?.end();
    return search.found(addresses, isQualified);
  }

  /** Searches one candidate: the first `labels` labels, on all networks or on those with the rest as their name. */
  #search(
    name: QuestionName,
    behaviour: Behaviour,
    labels: number,
    isQualified: boolean,
    trace: SearchTrace | undefined,
  ): NameAddresses | undefined {
    const networks = this.#networks;
    const length = name.lengthOf[labels] as number;
    trace?.beginCandidate(name.folded, length, name.foldedLength);
    for (const network of networks) {
      if (network.links.length === 0) continue;
      if (isQualified && !isSuffix(name, behaviour, length, network)) continue;
      const link = linkOf(name, behaviour, length, network);
      if (link?.target === undefined) continue;
      const hit = network.names.lookup(link.target, link.target.length, link.targetHash);
      trace?.recordLink(network.name, link.target, hit !== undefined);
      if (hit !== undefined) return hit;
    }
    const hash = name.hashOf[labels] as number;
    for (const network of networks) {
      if (isQualified && !isSuffix(name, behaviour, length, network)) continue;
      const hit = network.names.lookup(name.folded, length, hash);
      if (hit === undefined) {
        trace?.recordLookup(network.name, false);
        continue;
      }
      // A link of this name has no target, see above. Docker then hides the container with the name itself.
      if (!behaviour.skipsDanglingLinks && linkOf(name, behaviour, length, network) !== undefined) {
        trace?.recordHidden(network.name);
        continue;
      }
      if (isQualified || this.#project === undefined || !behaviour.prefersOwnProject) {
        trace?.recordLookup(network.name, true);
        return hit;
      }
      const own = hit.inProject(this.#project);
      trace?.recordLookup(network.name, true, own === hit ? undefined : this.#project);
      return own;
    }
    return undefined;
  }
}

function isSuffix(name: QuestionName, { ignoresCase }: Behaviour, length: number, network: VisibleNetwork): boolean {
  const suffix = ignoresCase ? network.suffixFolded : network.suffix;
  if (suffix?.length !== name.foldedLength - length) return false;
  return ignoresCase
    ? sameBytes(name.folded, length, suffix, 0, suffix.length)
    : sameBytes(name.spelled, name.spelledAt + length, suffix, 0, suffix.length);
}

function linkOf(
  name: QuestionName,
  { ignoresCase }: Behaviour,
  length: number,
  network: VisibleNetwork,
): ContainerLink | undefined {
  for (const link of network.links) {
    const alias = ignoresCase ? link.aliasFolded : link.alias;
    if (alias?.length !== length) continue;
    const isSame = ignoresCase
      ? sameBytes(name.folded, 0, alias, 0, length)
      : sameBytes(name.spelled, name.spelledAt, alias, 0, length);
    if (isSame) return link;
  }
  return undefined;
}
