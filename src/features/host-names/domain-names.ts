/**
 * HostDomainNames: the names below the host's domain inside containers, while they resolve on the host. A container has
 * those of its own networks first, then those of networks that the setting `visible` adds. What it does not see there
 * does not exist: the domain is ours, and no server knows it.
 */
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import type { DefaultBridgeSetting, VisibleSetting } from "../../base/model/name-choices.ts";
import { hashOf } from "../../base/model/label-table.ts";
import {
  DENIED,
  MISS,
  type NameAddresses,
  type NameSearch,
  type OwnName,
  type QuestionName,
  type VisibleNames,
} from "../../base/model/visible-names.ts";
import type { Settings } from "../../config/settings.ts";
import { type ContainerFact, DEFAULT_BRIDGE, type NetworkFact, isUserDefined } from "../../container/facts/fact.ts";
import { NetworkNames } from "../../container/names/docker/network-names.ts";
import type { NameContext } from "../../container/names/name-sources.ts";
import type { NameSource, NamedContainer } from "../../container/names/source/name-source.ts";
import { type Visibility, visibilityOf } from "../../container/names/source/visibility.ts";
import { HostDomain } from "../../container/names/host-domain/host-domain.ts";

type NetworkOf = (id: string) => NetworkFact | undefined;

/** The names of each network. */
type Zones = ReadonlyMap<string, NetworkNames>;

const NO_ADDRESSES: NameAddresses = { v4: new Uint8Array(0), v6: new Uint8Array(0) };

class VisibleHostDomain implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.hostDomain;
  readonly #domain: HostDomain;
  readonly #zones: Zones;
  readonly #own: readonly string[];
  readonly #visibility: Visibility | undefined;
  readonly #networkOf: NetworkOf;

  constructor(
    { domain, zones, networkOf }: { readonly domain: HostDomain; readonly zones: Zones; readonly networkOf: NetworkOf },
    own: readonly string[],
    visibility: Visibility | undefined,
  ) {
    this.#domain = domain;
    this.#zones = zones;
    this.#own = own;
    this.#visibility = visibility;
    this.#networkOf = networkOf;
  }

  find(name: QuestionName, search: NameSearch): number {
    const before = this.#domain.labelsBefore(name);
    if (before === undefined) return MISS;
    const where = `below "${this.#domain.text}", the domain of container names on the host`;
    if (before === 0) return search.found(NO_ADDRESSES, true);
    for (const labels of this.#domain.candidates(name, before)) {
      const hash = hashOf(labels);
      for (const id of this.#own) {
        const found = this.#zones.get(id)?.lookup(labels, labels.length, hash);
        if (found === undefined) continue;
        search.trace?.record("names", `a container's name on "${this.#titleOf(id)}" ${where}`);
        return search.found(found, true);
      }
      const elsewhere = this.#findElsewhere(labels, hash);
      if (elsewhere === undefined) continue;
      search.trace?.record("names", `a container's name on a network that this one is not on ${where}`);
      return search.found(elsewhere, true);
    }
    search.trace?.record("names", `no container that this one sees (setting visible) has this name ${where}`);
    return DENIED;
  }

  *list(): Iterable<OwnName> {
    const domain = this.#domain.text;
    const ownFirst = new Set([...this.#own, ...this.#zones.keys()]);
    for (const id of ownFirst) {
      const network = this.#networkOf(id);
      const isOwn = this.#own.includes(id);
      if (!isOwn && (network === undefined || this.#visibility?.sees(network) !== true)) continue;
      for (const [name, entry] of this.#zones.get(id)?.list() ?? []) {
        const { v4, v6 } = isOwn ? entry : (this.#visibility?.reachable(entry) ?? entry);
        const own = { name: `${name}.${domain}`, source: `domain ${domain}`, network: this.#titleOf(id) };
        yield { ...own, holders: entry.holders, v4, v6 };
      }
    }
  }

  /** An address has the name that Docker gives it. */
  pointer(): undefined {
    return undefined;
  }

  #findElsewhere(labels: Uint8Array, hash: number): NameAddresses | undefined {
    const visibility = this.#visibility;
    if (visibility === undefined) return undefined;
    for (const [id, names] of this.#zones) {
      const network = this.#networkOf(id);
      if (network === undefined || !visibility.sees(network)) continue;
      const found = names.lookup(labels, labels.length, hash);
      if (found !== undefined) return visibility.reachable(found);
    }
    return undefined;
  }

  #titleOf(id: string): string {
    return this.#networkOf(id)?.name ?? id;
  }
}

interface HostDomainState {
  /** At first. */
  readonly domain: string | undefined;
  /** It has succeeded another one. */
  readonly onSucceeded: (names: HostDomainNames) => void;
}

type HostDomainContext = Pick<NameContext, "networkOf" | "containers" | "onChange">;

export class HostDomainNames implements NameSource {
  readonly #context: HostDomainContext;
  readonly #visible: VisibleSetting;
  readonly #defaultBridge: DefaultBridgeSetting;
  readonly #onSucceeded: HostDomainState["onSucceeded"];
  readonly #zones = new Map<string, NetworkNames>();
  #domain: HostDomain | undefined;

  constructor(
    { visible, defaultBridge }: Pick<Settings, "visible" | "defaultBridge">,
    context: HostDomainContext,
    { domain, onSucceeded }: HostDomainState,
  ) {
    this.#context = context;
    this.#visible = visible;
    this.#defaultBridge = defaultBridge;
    this.#onSucceeded = onSucceeded;
    this.#domain = domain === undefined ? undefined : new HostDomain(domain);
  }

  get domain(): string | undefined {
    return this.#domain?.text;
  }

  /** Sets the domain, while names of containers resolve on the host. Existing views do not change. */
  setDomain(text: string | undefined): void {
    if (text === this.#domain?.text) return;
    this.#zones.clear();
    this.#domain = text === undefined ? undefined : new HostDomain(text);
    for (const fact of this.#context.containers()) this.join({ fact, before: undefined });
    this.#context.onChange();
  }

  succeed(current: HostDomainNames): void {
    this.setDomain(current.#domain?.text);
    this.#onSucceeded(this);
  }

  join({ fact, before }: Pick<NamedContainer, "fact" | "before">): void {
    const domain = this.#domain;
    if (domain === undefined) return;
    if (before !== undefined) this.leave(before);
    for (const endpoint of fact.endpoints) {
      const { networkId, ipv4, ipv6 } = endpoint;
      const zone = this.#zones.get(networkId) ?? new NetworkNames(domain.text);
      this.#zones.set(networkId, zone);
      zone.put(fact.id, { names: domain.namesOf(fact, endpoint), ipv4, ipv6 });
    }
  }

  leave({ id, endpoints }: ContainerFact): void {
    for (const { networkId } of endpoints) this.#zones.get(networkId)?.remove(id);
  }

  removeNetwork(id: string): void {
    this.#zones.delete(id);
  }

  namesFor(container: ContainerFact): VisibleNames | undefined {
    const domain = this.#domain;
    if (domain === undefined) return undefined;
    const { networkOf } = this.#context;
    const own = container.endpoints
      .filter(({ networkName }) => this.#hasNames(networkName))
      .toSorted((a, b) => (a.networkName < b.networkName ? -1 : 1));
    return new VisibleHostDomain(
      { domain, zones: this.#zones, networkOf },
      own.map(({ networkId }) => networkId),
      visibilityOf(container, this.#visible, networkOf),
    );
  }

  #hasNames(networkName: string): boolean {
    return isUserDefined(networkName) || (networkName === DEFAULT_BRIDGE && this.#defaultBridge === "names");
  }
}
