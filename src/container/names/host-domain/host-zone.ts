/**
 * HostZone: the container names that programs on the host resolve, below one domain: NAME, NAME.NETWORK,
 * SERVICE.PROJECT and N.SERVICE.PROJECT, and any name below these. It has only addresses that the host can reach. What
 * it does not know below the domain does not exist; a name that several containers have resolves to all of them.
 */
import { LOCAL_SOURCE } from "../../../base/model/local-source.ts";
import { hashOf } from "../../../base/model/label-table.ts";
import {
  DENIED,
  MISS,
  type NameAddresses,
  type NameSearch,
  type NamesTrace,
  type OwnName,
  type QuestionName,
  type ReverseName,
  type VisibleNames,
} from "../../../base/model/visible-names.ts";
import { NetworkNames } from "../docker/network-names.ts";
import type { ContainerFact, EndpointFact } from "../../facts/fact.ts";
import { fittingAddresses } from "./fitting-answers.ts";
import { HostDomain } from "./host-domain.ts";

/** One container on one network that the host can reach. */
interface HostMember {
  readonly container: string;
  readonly network: string;
  readonly names: readonly string[];
}

const NO_ADDRESSES: NameAddresses = { v4: new Uint8Array(0), v6: new Uint8Array(0) };

export class HostZone implements VisibleNames {
  readonly kind = LOCAL_SOURCE.hostDomain;
  readonly #domain: HostDomain;
  readonly #which: string;
  #means = "";
  readonly #names: NetworkNames;
  readonly #members = new Map<string, HostMember>();

  /** `which`: the containers that have names here, for explain. */
  constructor(domain: string, which = "that the host can reach") {
    this.#which = which;
    this.#domain = new HostDomain(domain);
    this.#names = new NetworkNames(domain);
  }

  get places(): readonly string[] {
    return [`the host's domain ${this.#domain.text}${this.#means}`];
  }

  /** Sets by which means its names reach the programs of the host, in words. */
  setMeans(text: string | undefined): void {
    this.#means = text === undefined ? "" : `, ${text}`;
  }

  /** Replaces what a container contributes: its endpoints that the host can reach. */
  put(fact: ContainerFact, before: readonly EndpointFact[], reachable: readonly EndpointFact[]): void {
    this.remove(fact.id, before);
    for (const endpoint of reachable) {
      const names = this.#domain.namesOf(fact, endpoint);
      const holder = holderOf(fact.id, endpoint);
      this.#members.set(holder, { container: fact.name, network: endpoint.networkName, names });
      this.#names.put(holder, { names, ipv4: endpoint.ipv4, ipv6: endpoint.ipv6 });
    }
  }

  remove(id: string, endpoints: readonly EndpointFact[]): void {
    for (const endpoint of endpoints) {
      this.#members.delete(holderOf(id, endpoint));
      this.#names.remove(holderOf(id, endpoint));
    }
  }

  find(name: QuestionName, search: NameSearch): number {
    const before = this.#domain.labelsBefore(name);
    if (before === undefined) return MISS;
    if (before === 0) {
      search.trace?.record("names", `"${this.#domain.text}" is the domain of container names on this host`);
      return search.found(NO_ADDRESSES, true);
    }
    for (const labels of this.#domain.candidates(name, before)) {
      const hit = this.#names.lookup(labels, labels.length, hashOf(labels));
      if (hit === undefined) continue;
      if (search.trace !== undefined) this.#explain(search.trace, labels);
      return search.found(fittingAddresses(hit, name.foldedLength), true);
    }
    search.trace?.record("names", `no container ${this.#which} has this name below "${this.#domain.text}"`);
    return DENIED;
  }

  pointer(labels: Uint8Array, length: number, hash: number): ReverseName | undefined {
    return this.#names.pointer(labels, length, hash);
  }

  *list(): Iterable<OwnName> {
    const { text } = this.#domain;
    for (const [name, { holders, v4, v6 }] of this.#names.list())
      yield { name: `${name}.${text}`, source: `domain ${text}`, holders: [...new Set(holders.map(idOf))], v4, v6 };
  }

  #explain(trace: NamesTrace, labels: Uint8Array): void {
    const name = textOf(labels);
    const holders = [...this.#members.values()].filter(({ names }) =>
      names.some((each) => each.toLowerCase() === name),
    );
    const list = holders.map(({ container, network }) => `${container} (network ${network})`).join(", ");
    const all = holders.length > 1 ? `; ${holders.length} have this name, and all their addresses are given` : "";
    trace.record("names", `"${name}" below "${this.#domain.text}" is ${list}${all}`);
  }
}

function holderOf(id: string, { networkId }: EndpointFact): string {
  return `${id}/${networkId}`;
}

function idOf(holder: string): string {
  return holder.slice(0, holder.indexOf("/"));
}

function textOf(labels: Uint8Array): string {
  const parts: string[] = [];
  for (let at = 0; at < labels.length; at += 1 + (labels[at] as number)) {
    parts.push(Buffer.from(labels.subarray(at + 1, at + 1 + (labels[at] as number))).toString("latin1"));
  }
  return parts.join(".");
}
