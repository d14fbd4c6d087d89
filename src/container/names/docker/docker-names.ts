/**
 * DockerNames: resolves a name as Docker does for one container. The whole name is tried on every network, then as
 * NAME.NETWORK with an ever longer network name. At each step links come before names and networks are in Docker's
 * order. The first hit ends the search: answers of several networks are never merged.
 */
import { LOCAL_SOURCE, type LocalSource } from "../../../base/model/local-source.ts";
import { sameBytes, presentation } from "../../../base/dns/name.ts";
import type { Behaviour } from "../../../base/model/behaviour.ts";
import {
  type QuestionName,
  MISS,
  type NameAddresses,
  type NameSearch,
  type VisibleNames,
  type ReverseName,
  type NamesTrace,
} from "../../../base/model/visible-names.ts";
import type { NameEntry } from "../source/name-entry.ts";
import type { NetworkNames } from "./network-names.ts";

/** One reading of a name: whole, or as NAME.NETWORK. */
interface NameCandidate {
  readonly name: string;
  readonly network: string | undefined;
  readonly links: string[];
  readonly misses: string[];
  readonly hidden: string[];
  hit: { readonly layer: "links" | "names"; readonly what: string; apart?: string } | undefined;
}

/** A reverse name has 33 readings as NAME.NETWORK. */
const SPLITS_SHOWN = 3;

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
  /** The option that keeps its containers from reaching each other. */
  readonly apartBy?: string | undefined;
}

/** The container that asks. */
interface Asker {
  readonly id: string;
  /** Its Compose project. */
  readonly project: string | undefined;
}

export class DockerNames implements VisibleNames {
  readonly kind: LocalSource;
  readonly #networks: readonly VisibleNetwork[];
  readonly #asker: Asker | undefined;

  /** `networks` in search order. */
  constructor(networks: readonly VisibleNetwork[], asker?: Asker, kind: LocalSource = LOCAL_SOURCE.network) {
    this.kind = kind;
    this.#networks = networks;
    this.#asker = asker;
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
  ): NameEntry | undefined {
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
      if (hit === undefined) continue;
      if (network.apartBy === undefined) return hit;
      const { target, targetHash } = link;
      const elsewhere = isQualified
        ? undefined
        : (names: NetworkNames): NameEntry | undefined => names.lookup(target, target.length, targetHash);
      return this.#reachable(hit, network, behaviour, elsewhere, trace);
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
      const project = isQualified || !behaviour.prefersOwnProject ? undefined : this.#asker?.project;
      const own = project === undefined ? hit : hit.inProject(project);
      trace?.recordLookup(network.name, true, own === hit ? undefined : project);
      if (network.apartBy === undefined) return own;
      const elsewhere = isQualified
        ? undefined
        : (names: NetworkNames): NameEntry | undefined => names.lookup(name.folded, length, hash);
      const other = this.#reachable(own, network, behaviour, elsewhere, trace);
      return other === own || project === undefined ? other : other.inProject(project);
    }
    return undefined;
  }

  /**
   * What is found on a network that keeps its containers apart leads nowhere: if one of these containers has the name on another
   * network, too, that is answered. `elsewhere` looks the name up there; whoever names the network wants this one.
   */
  #reachable(
    found: NameEntry,
    { name, apartBy = "" }: VisibleNetwork,
    { prefersReachable }: Behaviour,
    elsewhere: ((names: NetworkNames) => NameEntry | undefined) | undefined,
    trace: SearchTrace | undefined,
  ): NameEntry {
    if (found.isOnlyOf(this.#asker?.id)) return found;
    if (prefersReachable && elsewhere !== undefined) {
      for (const network of this.#networks) {
        const other = network.apartBy === undefined ? elsewhere(network.names) : undefined;
        if (other?.sharesHolder(found) !== true) continue;
        trace?.recordApart(name, apartBy, network.name);
        return other;
      }
    }
    trace?.recordApart(name, apartBy, undefined);
    return found;
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

/**
 * The steps of a name search through networks, in words, for `dns11 explain`. The search itself records
 * them, so that they cannot differ from what it did; other queries have no trace.
 */
class SearchTrace {
  readonly #trace: NamesTrace;
  #candidate: NameCandidate | undefined;
  readonly #splits: string[] = [];

  constructor(trace: NamesTrace) {
    this.#trace = trace;
  }

  /** Starts a candidate: the whole name, or a name of `length` bytes followed by a network's name. */
  beginCandidate(name: Uint8Array, length: number, end: number): void {
    this.#endCandidate();
    this.#candidate = {
      name: presentation(name, 0, length),
      network: length < end ? presentation(name, length, end) : undefined,
      links: [],
      misses: [],
      hidden: [],
      hit: undefined,
    };
  }

  recordLink(network: string, target: Uint8Array, isHit: boolean): void {
    const what = `a link on ${quoted(network)} to ${quoted(presentation(target, 0, target.length))}`;
    if (isHit) this.#hit("links", what);
    else this.#candidate?.links.push(`${what}, which does not exist there`);
  }

  /** `project`: its containers come before those of others with the same name. */
  recordLookup(network: string, isHit: boolean, project?: string): void {
    const own = project === undefined ? "" : `, in the container's own project ${quoted(project)} (switch own-project)`;
    if (isHit) this.#hit("names", `a name on ${quoted(network)}${own}`);
    else this.#candidate?.misses.push(network);
  }

  /** It was found on a network that keeps its containers apart, and perhaps on another one. */
  recordApart(network: string, apartBy: string, other: string | undefined): void {
    const instead = other === undefined ? "" : `, so its addresses on ${quoted(other)} are answered`;
    const { hit } = this.#candidate ?? {};
    if (hit !== undefined)
      hit.apart = `; containers on ${quoted(network)} cannot reach each other (${apartBy})${instead}`;
  }

  /** A link to a name that does not exist hides a container's name, as in Docker. */
  recordHidden(network: string): void {
    this.#candidate?.hidden.push(network);
  }

  /** Ends the search. */
  end(): void {
    this.#endCandidate();
    this.#endSplits();
  }

  #hit(layer: "links" | "names", what: string): void {
    if (this.#candidate !== undefined) this.#candidate.hit = { layer, what };
  }

  /** Reports all readings as NAME.NETWORK without such a network in one line. */
  #endSplits(): void {
    const splits = this.#splits.splice(0);
    if (splits.length === 0) return;
    const shown = splits.slice(0, SPLITS_SHOWN).join(", ");
    const more = splits.length > SPLITS_SHOWN ? ` and ${splits.length - SPLITS_SHOWN} more` : "";
    const text = `not NAME.NETWORK either: this container is on no such network (${shown}${more})`;
    this.#trace.record("names", text);
  }

  #endCandidate(): void {
    const candidate = this.#candidate;
    if (candidate === undefined) return;
    this.#candidate = undefined;
    const { name, network, links, misses, hidden, hit } = candidate;
    const isUnknownNetwork =
      network !== undefined && hit === undefined && links.length + misses.length + hidden.length === 0;
    if (!isUnknownNetwork) this.#endSplits();
    const add = (layer: "links" | "names", text: string): void => this.#trace.record(layer, text);
    if (hit?.layer === "links") return add("links", `${quoted(name)} is ${hit.what}${hit.apart ?? ""}`);
    if (links.length > 0) add("links", `${quoted(name)} is ${links.join("; ")}`);
    else if (network === undefined) add("links", `this container has no link ${quoted(name)}`);
    for (const each of hidden)
      add("names", `${quoted(name)} on ${quoted(each)} is hidden by a link whose target does not exist`);
    if (hit !== undefined) {
      const before = misses.length === 0 ? "" : ` (not found on ${list(misses)}, which is searched first)`;
      return add("names", `${quoted(name)} is ${hit.what}${before}${hit.apart ?? ""}`);
    }
    if (misses.length > 0) return add("names", `no container has the name ${quoted(name)} on ${list(misses)}`);
    if (hidden.length > 0) return;
    if (network === undefined) return add("names", "this container is on no network with container names");
    this.#splits.push(`${quoted(name)} on ${quoted(network)}`);
  }
}

function quoted(text: string): string {
  return `"${text}"`;
}

function list(names: readonly string[]): string {
  return names.map(quoted).join(", ");
}
