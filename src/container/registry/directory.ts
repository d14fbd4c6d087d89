/**
 * Directory: all names of all networks, kept by applying facts. A change costs what changed: the names of one container
 * on its networks, and its own view. It is applied in one synchronous step, so a query sees all of it or nothing.
 */
import { LIMITS } from "../../config/limits.ts";
import { isSameAddress } from "../../model/address.ts";
import { nameKey, spelledLabels } from "../../model/docker-name.ts";
import { LABEL_DEFAULTS, type LabelPolicy } from "../../model/label-policy.ts";
import { hashOf } from "../../model/label-table.ts";
import { NetworkNames } from "../../model/network-names.ts";
import { NO_RULES, type RouteRules } from "../../model/route-rules.ts";
import type { Link, Server, Upstreams, View, ViewNetwork } from "../../model/view.ts";
import { folded } from "../../dns/name.ts";
import { type ContainerFact, type EndpointFact, type NameserversFact, type NetworkFact } from "./fact.ts";
import { type Joined, inSearchOrder } from "./order.ts";
import { DNS_LABEL, ownSay } from "./label-routes.ts";
import { type Say, routesOf, saidBy } from "./routes.ts";

interface KnownNetwork {
  readonly fact: NetworkFact;
  readonly names: NetworkNames;
  readonly suffix: Uint8Array | undefined;
}

export interface DirectoryOptions {
  /** Of Docker's list, so many servers are used. */
  readonly serversMax: number;
  /** Our own address: as a server of a container it would ask itself. */
  readonly ownAddress: string;
}

/** What is different for a KIND node. */
export interface NodePlace {
  /** Where its pods ask us: as servers of the node, it would ask itself. */
  readonly ownAddresses: readonly string[];
  /** What host.docker.internal is in there: nothing, whatever a server says, or an address. */
  readonly hostName: "deny" | "ask" | (string & {});
}

/** As Docker Desktop calls the host; KIND asks for it at each start of a node. */
const HOST_NAME = "host.docker.internal";
const DNS_PORT = 53;
/** Docker's own resolver behind us. */
const DOOR: Server = { from: "door", address: "127.0.0.11", port: DNS_PORT };
/** Where the list of servers comes from that nobody put another one for. */
const LISTS: Readonly<Record<NameserversFact["kind"], string>> = {
  listed: "Docker's list for this container",
  host: "the host's resolv.conf, as it is now",
  unknown: "",
};
/** Drivers whose networks lead nowhere, with or without a gateway. */
const DRIVERS_WITHOUT_OUTSIDE = new Set(["null", "host"]);

export class Directory {
  readonly #options: DirectoryOptions;
  readonly #networks = new Map<string, KnownNetwork>();
  readonly #containers = new Map<string, ContainerFact>();
  #host: readonly Server[] = [];
  #rules: RouteRules = NO_RULES;
  #labelPolicy: LabelPolicy = LABEL_DEFAULTS;
  #serversMax: number;

  constructor(options: DirectoryOptions) {
    this.#options = options;
    this.#serversMax = options.serversMax;
  }

  get containers(): ReadonlyMap<string, ContainerFact> {
    return this.#containers;
  }

  /** The host's own servers, from now on. Views made before do not change. */
  setHost(servers: readonly Server[]): void {
    this.#host = servers;
  }

  /** What settings say about who is asked, from now on. Views made before do not change. */
  setRules(rules: RouteRules): void {
    this.#rules = rules;
  }

  /** What labels may say about who is asked, from now on. Views made before do not change. */
  setLabelPolicy(policy: LabelPolicy): void {
    this.#labelPolicy = policy;
  }

  /** How many servers of Docker's list are used, from now on. */
  setServersMax(serversMax: number): void {
    this.#serversMax = serversMax;
  }

  network(id: string): NetworkFact | undefined {
    return this.#networks.get(id)?.fact;
  }

  putNetwork(fact: NetworkFact): void {
    if (this.#networks.has(fact.id)) return;
    const names = new NetworkNames(fact.name);
    this.#networks.set(fact.id, { fact, names, suffix: spelledLabels(fact.name) });
  }

  /** Forgets a network that is gone. Whoever was on it has been told to have left it. */
  removeNetwork(id: string): void {
    this.#networks.delete(id);
  }

  /** Takes a container's facts instead of those that were known. Its networks must be known already. */
  putContainer(fact: ContainerFact): void {
    this.#withdraw(fact.id, new Set(fact.endpoints.map((endpoint) => endpoint.networkId)));
    this.#containers.set(fact.id, fact);
    for (const endpoint of fact.endpoints) {
      this.#networks.get(endpoint.networkId)?.names.put(fact.id, endpoint);
    }
  }

  removeContainer(id: string): void {
    this.#withdraw(id, new Set());
    this.#containers.delete(id);
  }

  /** What the namespace of this container may know now. */
  viewOf(fact: ContainerFact, node?: NodePlace): View {
    const joined = fact.endpoints.flatMap((endpoint): Joined[] => {
      const network = this.#networks.get(endpoint.networkId)?.fact;
      return network === undefined ? [] : [{ endpoint, network }];
    });
    const ordered = inSearchOrder(joined);
    const networks = ordered.flatMap(({ endpoint }) => this.#viewNetwork(endpoint));
    const upstreams = this.#upstreams(fact, ordered, node);
    if (node === undefined) return { networks, upstreams };
    return { networks: [...networks, ...hostNetwork(node)], upstreams, budgetMs: LIMITS.nodeBudgetMs };
  }

  #withdraw(id: string, staysOn: ReadonlySet<string>): void {
    for (const { networkId } of this.#containers.get(id)?.endpoints ?? []) {
      if (!staysOn.has(networkId)) this.#networks.get(networkId)?.names.remove(id);
    }
  }

  #viewNetwork(endpoint: EndpointFact): ViewNetwork[] {
    const network = this.#networks.get(endpoint.networkId);
    if (network === undefined) return [];
    const { fact, names, suffix } = network;
    return [
      {
        id: fact.id,
        name: fact.name,
        suffix,
        suffixFolded: suffix && folded(suffix),
        names,
        links: linksOf(endpoint.links),
      },
    ];
  }

  #upstreams(
    { labels, imageLabels, nameservers }: ContainerFact,
    joined: readonly Joined[],
    node: NodePlace | undefined,
  ): Upstreams {
    const { everyone, networks, isNdotsSet } = this.#rules;
    const { trustsImages, servers: place } = this.#labelPolicy;
    const reaches = joined.some(reachesOutside);
    // Some drivers lead outside by ways that no interface tells; only Docker knows then whether the host's servers serve.
    const isUnclear = !reaches && joined.some(mayReachOutside);
    const ownAddresses = [this.#options.ownAddress, ...(node?.ownAddresses ?? [])];
    // Where KIND's entrypoint has been, Docker's own resolver answers at another address.
    const doors = [DOOR, ...(node?.ownAddresses ?? []).map((address): Server => ({ ...DOOR, address }))];
    const listed = isUnclear ? doors : this.#listed(nameservers, doors, ownAddresses);
    const isOwn = nameservers.kind === "listed" && nameservers.isOwn && !isUnclear;
    // Who may say what, most trusted first: the operator, whoever created the container, the author of its image.
    const says: Say[] = [
      ...joined.map(({ network: { name } }) => saidBy(`the settings of network "${name}"`, networks.get(name) ?? [])),
      saidBy("the settings, dns", everyone),
      saidBy(
        "the settings, kind.host-name",
        node?.hostName === "deny" ? [{ domains: [HOST_NAME], servers: [], isLocal: true }] : [],
      ),
      saidBy(`its label ${DNS_LABEL}`, ownSay(labels, place).say),
      saidBy("its own --dns", isOwn ? [{ domains: [""], servers: listed, isLocal: false }] : []),
      saidBy(`its image's label ${DNS_LABEL}`, trustsImages ? ownSay(imageLabels.labels, place).say : []),
    ];
    const fallbackBy =
      listed === doors
        ? "what is left: no interface tells Docker's list, so its own resolver behind us is asked"
        : LISTS[nameservers.kind];
    return {
      routes: routesOf({
        says,
        fallback: listed,
        fallbackBy,
        host: this.#host,
        hasExternalAccess: reaches || isUnclear,
      }),
      isNdotsSet: isNdotsSet || (!isUnclear && nameservers.kind !== "unknown" && nameservers.isNdotsSet),
    };
  }

  /** The list that Docker would ask. */
  #listed(nameservers: NameserversFact, doors: readonly Server[], ownAddresses: readonly string[]): readonly Server[] {
    if (nameservers.kind === "unknown") return doors;
    // Where the host names nobody, engines up to 27 have somebody to ask all the same.
    if (nameservers.kind === "host") return this.#host.length > 0 ? this.#host : doors;
    return nameservers.servers
      .filter(({ from, address }) => from === "host" || !ownAddresses.some((own) => isSameAddress(address, own)))
      .slice(0, this.#serversMax)
      .map((server): Server => ({ ...server, port: DNS_PORT }));
  }
}

/** The engine's host, as a name that only a node knows. It is on no network, so nothing is found below it. */
function hostNetwork({ hostName }: NodePlace): ViewNetwork[] {
  if (hostName === "deny" || hostName === "ask") return [];
  const isIpv6 = hostName.includes(":");
  const names = new NetworkNames("");
  names.put(HOST_NAME, {
    names: [HOST_NAME],
    ipv4: isIpv6 ? undefined : hostName,
    ipv6: isIpv6 ? hostName : undefined,
  });
  return [{ id: "", name: "", suffix: undefined, suffixFolded: undefined, names, links: [] }];
}

/** A bridge without a gateway leads nowhere; what another driver does without one (ipvlan l3 routes) is its own affair. */
function mayReachOutside({ network }: Joined): boolean {
  const isKnown = network.driver === "bridge" || DRIVERS_WITHOUT_OUTSIDE.has(network.driver);
  return !network.isInternal && !isKnown;
}

function reachesOutside({ endpoint, network }: Joined): boolean {
  if (network.isInternal || DRIVERS_WITHOUT_OUTSIDE.has(network.driver)) return false;
  return endpoint.ipv4Gateway !== undefined || endpoint.ipv6Gateway !== undefined;
}

/** The last link of an alias counts. */
function linksOf(texts: readonly string[]): Link[] {
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
