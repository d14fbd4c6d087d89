/**
 * Directory: the facts about containers and networks, and the view of each container: its names and its upstream
 * routes. A change only touches the names of one container on its networks and that container's view. It is applied in
 * one synchronous step, so a query sees all of it or nothing.
 *
 * Names are compiled with the settings, so other settings need another directory. It is filled beside the current one, in
 * slices, and succeeds it when it knows as much. Each view is of one directory or of the other: no answer mixes the two.
 */
import { LIMITS } from "../../base/limits.ts";
import { isNodeServer, NO_RULES, type RouteRules, type ContainerServer } from "../../base/model/server-text.ts";
import type { MissingContainerSetting } from "../../base/model/upstream-policy.ts";
import type { Route, Server, Upstreams, View } from "../../base/model/view.ts";
import { DockerNetworks } from "../names/docker/networks.ts";
import { NAME_SETTINGS_DEFAULTS, type NameSettings } from "../names/source/name-settings.ts";
import type { NodeContext, NameTraits } from "../names/source/name-source.ts";
import { type NameContext, NameSources, type PlacedNames, type SharedNames } from "../names/name-sources.ts";
import { projectOf } from "../facts/compose.ts";
import type { ContainerFact, NetworkFact, StoppedFact } from "../facts/fact.ts";
import { FormerAddresses, FormerNames } from "./former-addresses.ts";
import { effectiveLabels, type Labels } from "../facts/labels.ts";
import { labelRoutes } from "./label-routes.ts";
import { type FindContainer, type RouteLayer, routeLayer, routesOf } from "./routes.ts";
import { type DeniedDomains, type Routing, routingOf } from "./routing.ts";
import { UpstreamContainers } from "./upstream-containers.ts";
import { NAME_CHOICES_DEFAULTS, type PtrForm, type HealthPolicy, isLeftOut } from "../../base/model/name-choices.ts";
import { labelHealth, labelOrder, labelPtr, labelTtl } from "../facts/label-choices.ts";

interface DirectoryOptions {
  /** How many servers of Docker's list are used. */
  readonly serversMax: number;
  /** dns11's own address: as a server of a container it would be a forwarding loop. */
  readonly ownAddress: string;
  /** What the settings say about names; by default as Docker's resolver. */
  readonly names?: Partial<NameSettings>;
  /** Whether the host's servers are asked where Docker's resolver is a container's only one, and fails. */
  readonly replacesDocker?: boolean;
  /** The routes of the settings. */
  readonly rules?: RouteRules;
  /** What happens where a container that is an upstream server is missing. */
  readonly missingContainer?: MissingContainerSetting;
  /** Whether Docker's resolver answers all that containers on networks of several machines ask, unless a feature has it asked for names there. */
  readonly leavesToDocker?: boolean;
  /** Makes the sources of names of features, for the settings of this directory. */
  readonly makeNames?: ((context: NameContext) => readonly PlacedNames[]) | undefined;
  /** The servers of features for domains, as they are now. */
  readonly featureRoutes?: () => RouteLayer;
  /** The names of features that outlive a reload. */
  readonly shared?: SharedNames | undefined;
  /** The DNS servers of the cluster that a container is a node of. */
  readonly clusterDnsOf?: (fact: ContainerFact) => string | undefined;
  /** Called in the step in which names have changed: no answer that was given before is valid any more. */
  readonly onNames?: () => void;
}

export class Directory {
  readonly #options: DirectoryOptions;
  readonly #settings: NameSettings;
  readonly #networks: DockerNetworks;
  /** What they learn calls `onNames` where names change. Existing views do not change. */
  readonly names: NameSources;
  readonly #containers = new Map<string, ContainerFact>();
  #former = new FormerAddresses();
  #formerNames = new FormerNames();
  readonly #upstreamContainers = new UpstreamContainers({
    networkOf: (id) => this.network(id),
    layersOf: (fact) => this.#routing(fact, undefined).layers,
    clusterDnsOf: (fact) => this.#options.clusterDnsOf?.(fact),
  });
  #host: readonly Server[] = [];
  #rules: RouteRules = NO_RULES;
  #denied: DeniedDomains = { domains: [], by: "" };
  /** What it has succeeded, while there are views of it. */
  #predecessor: Directory | undefined;
  #onNames: (() => void) | undefined;

  constructor(options: DirectoryOptions) {
    this.#options = options;
    this.#onNames = options.onNames;
    this.#settings = { ...NAME_SETTINGS_DEFAULTS, ...options.names };
    this.#networks = new DockerNetworks(this.#settings.labels);
    this.names = new NameSources({
      settings: this.#settings,
      networks: this.#networks,
      networkOf: (id) => this.network(id),
      leavesToDocker: options.leavesToDocker === true,
      containers: () => this.#containers.values(),
      makeNames: options.makeNames,
      shared: options.shared,
      onChange: () => this.#onNames?.(),
    });
    if (options.rules !== undefined) this.setRules(options.rules);
    if (options.missingContainer !== undefined) this.#upstreamContainers.setMissing(options.missingContainer);
  }

  get containers(): ReadonlyMap<string, ContainerFact> {
    return this.#containers;
  }

  get former(): FormerAddresses {
    return this.#former;
  }

  get formerNames(): FormerNames {
    return this.#formerNames;
  }

  /** Takes over what `current` knows and this one does not, one fact after the other. Without any, both know the same. */
  *catchUp(current: Directory): Generator<void> {
    for (const { fact } of current.#networks.all()) {
      if (this.network(fact.id) === undefined) yield this.putNetwork(fact);
    }
    for (const fact of current.#containers.values()) {
      if (this.#containers.get(fact.id) !== fact) yield void this.putContainer(fact);
    }
    for (const id of this.#containers.keys()) {
      if (!current.#containers.has(id)) yield void this.removeContainer(id);
    }
    for (const { fact } of this.#networks.all()) {
      if (current.network(fact.id) === undefined) yield this.removeNetwork(fact.id);
    }
    yield* this.names.catchUp(current.names);
  }

  /** Takes over from `current`, which knows the same by now, and keeps it up to date for its views. */
  succeed(current: Directory): void {
    [this.#former, current.#former] = [current.#former, this.#former];
    [this.#formerNames, current.#formerNames] = [current.#formerNames, this.#formerNames];
    [this.#onNames, current.#onNames] = [current.#onNames, undefined];
    this.#host = current.#host;
    this.#denied = current.#denied;
    this.names.succeed(current.names);
    this.#upstreamContainers.setComplete(current.#upstreamContainers.isComplete);
    this.#predecessor = current;
    this.#onNames?.();
  }

  /** All views have been made again. Only a container that waits for its image's labels keeps the one it has. */
  forgetPredecessor(): void {
    const facts = [...this.#containers.values()];
    if (facts.every(({ imageLabels }) => imageLabels.source !== "awaited")) this.#predecessor = undefined;
  }

  /** Sets the host's servers. Existing views do not change. */
  setHost(servers: readonly Server[]): void {
    this.#host = servers;
  }

  /** Sets the routes of the settings. Existing views do not change. */
  setRules(rules: RouteRules): void {
    this.#rules = rules;
    this.#upstreamContainers.setRules(rules);
  }

  /** Sets whether every running container is known. Returns whether views change, once they are made again. */
  setComplete(isComplete: boolean): boolean {
    return this.#upstreamContainers.setComplete(isComplete);
  }

  /** Sets domains that exist in no upstream, unless settings or labels route them, and who says so. Existing views do not change. */
  setDenied(domains: readonly string[], by: string): void {
    this.#denied = { domains, by };
  }

  network(id: string): NetworkFact | undefined {
    return this.#networks.fact(id);
  }

  /** Those of a container on which other machines have names, too. */
  networksAcrossMachines(fact: ContainerFact): readonly NetworkFact[] {
    return this.#networks.acrossMachines(fact);
  }

  /** Those of containers that run. */
  *networks(): Generator<NetworkFact> {
    for (const { fact } of this.#networks.all()) yield fact;
  }

  /** The first network of this name. */
  networkNamed(name: string): NetworkFact | undefined {
    for (const { fact } of this.#networks.all()) if (fact.name === name) return fact;
    return undefined;
  }

  putNetwork(fact: NetworkFact): void {
    this.#predecessor?.putNetwork(fact);
    this.names.putNetwork(fact);
    this.#onNames?.();
  }

  /** Removes a network that is gone. Its containers have been updated before. */
  removeNetwork(id: string): void {
    this.#predecessor?.removeNetwork(id);
    this.names.removeNetwork(id);
    this.#onNames?.();
  }

  /**
   * Replaces a container's facts. Its networks must be known already. Returns whether views of other containers change,
   * once they are made again, because it is their upstream server.
   */
  putContainer(fact: ContainerFact): boolean {
    this.#predecessor?.putContainer(fact);
    const before = this.#containers.get(fact.id);
    if (before !== undefined) {
      this.#former.note(before, fact);
      this.#formerNames.note(before, fact);
    }
    this.#join(fact, before);
    this.#containers.set(fact.id, fact);
    this.#onNames?.();
    return this.#putUpstream(fact, before);
  }

  /** A container that is not running. While it was, its facts are still known. */
  putStopped(fact: StoppedFact): void {
    this.#predecessor?.putStopped(fact);
    this.names.putStopped(fact, this.#containers.get(fact.id));
    this.#onNames?.();
  }

  removeStopped(id: string): void {
    this.#predecessor?.removeStopped(id);
    this.names.removeStopped(id);
    this.#onNames?.();
  }

  /** Returns whether views of other containers change, as `putContainer` does. */
  removeContainer(id: string): boolean {
    this.#predecessor?.removeContainer(id);
    const fact = this.#containers.get(id);
    if (fact !== undefined) {
      this.names.leave(fact);
      this.#former.note(fact);
    }
    this.#formerNames.forget(id);
    this.#containers.delete(id);
    this.#onNames?.();
    return fact !== undefined && this.#upstreamContainers.remove(fact);
  }

  /** The names and upstreams of this container now. */
  viewOf(fact: ContainerFact, node?: NodeContext): View {
    const names = this.names.namesFor(fact, node);
    const upstreams = this.#upstreams(fact, node);
    return node === undefined ? { names, upstreams } : { names, upstreams, budgetMs: LIMITS.nodeBudgetMs };
  }

  /** For whoever is no container, and is answered on the host: the routes of the settings, and the host's servers for all else. */
  upstreamsFromHost(fact: ContainerFact): Upstreams {
    const { layers } = this.#routing(fact, undefined);
    // It has no namespace on a network: the host reaches a container there, and nobody is inside a node.
    const finder = this.#upstreamContainers.finderFor({ ...fact, endpoints: [] });
    const find: FindContainer = (server, domain) =>
      server.isNode === true ? { reason: "a node is asked for containers and the host only" } : finder(server, domain);
    const routes = routesOf({
      layers,
      containers: { find, fallsBack: this.#upstreamContainers.fallsBack },
      fallback: this.#host,
      fallbackBy: "the host's current resolv.conf",
      host: this.#host,
      hasExternalAccess: true,
    });
    return { routes, isNdotsSet: false };
  }

  /** The routes through nodes in the settings, for the host. */
  nodeRoutes(): readonly Route[] {
    const routes = this.#rules.everyone.filter(({ servers }) => servers.some(isNodeServer));
    const find = (server: ContainerServer): ReturnType<FindContainer> => this.#upstreamContainers.findNode(server);
    return routesOf({
      layers: [routeLayer("the setting dns", routes)],
      containers: { find, fallsBack: false },
      fallback: [],
      host: [],
      hasExternalAccess: true,
    }).filter(({ labelCount }) => labelCount > 0);
  }

  #join(fact: ContainerFact, before: ContainerFact | undefined): void {
    const labels = effectiveLabels(fact, this.#settings.labels);
    const project = projectOf(fact, this.#settings.labels);
    this.names.join({ fact, before, labels, project, traits: traitsOf(fact, labels, this.#settings) });
  }

  #putUpstream(fact: ContainerFact, before: ContainerFact | undefined): boolean {
    const policy = this.#settings.labels;
    const { layer } = labelRoutes(effectiveLabels(fact, policy), policy.servers);
    return this.#upstreamContainers.put(fact, layer, before);
  }

  #upstreams(fact: ContainerFact, node: NodeContext | undefined): Upstreams {
    const { layers, listed, listedBy, hasGateway, isUnclear } = this.#routing(fact, node);
    const { nameservers } = fact;
    return {
      routes: routesOf({
        layers,
        containers: { find: this.#upstreamContainers.finderFor(fact), fallsBack: this.#upstreamContainers.fallsBack },
        fallback: listed,
        fallbackBy: listedBy,
        host: this.#host,
        hasExternalAccess: hasGateway || isUnclear,
      }),
      isNdotsSet: !isUnclear && nameservers.kind !== "unknown" && nameservers.isNdotsSet,
    };
  }

  #routing(fact: ContainerFact, node: NodeContext | undefined): Routing {
    return routingOf(fact, node, {
      serversMax: this.#options.serversMax,
      ownAddress: this.#options.ownAddress,
      joined: this.#networks.joinedBy(fact),
      rules: this.#rules,
      labelPolicy: this.#settings.labels,
      denied: this.#denied,
      ofFeatures: this.#options.featureRoutes?.() ?? [],
      host: this.#host,
      isLeftToDocker: this.names.isLeftToDocker(fact, node),
      replacesDocker: this.#options.replacesDocker === true,
    });
  }
}

/**
 * The TTL of a container's names, the order of its addresses, the name that they point to, and whether its health
 * leaves it out, from its labels and the settings. They are compiled into the names when the container joins, so that a query
 * costs nothing more.
 * Where the settings say nothing of health or choices, labels do not count either.
 */
function traitsOf(
  fact: ContainerFact,
  labels: Labels,
  { health, choices }: Pick<NameSettings, "health" | "choices">,
): NameTraits {
  const isLastResort = health !== undefined && isUnhealthy(fact, labels, health);
  if (choices === undefined) return { isLastResort };
  return {
    isLastResort,
    ttlSeconds: labelTtl(labels).policy,
    isSorted: labelOrder(labels, choices.order).policy === "sorted",
    pointer: pointerOf(fact, labelPtr(labels, choices.ptr).policy),
  };
}

function isUnhealthy(fact: ContainerFact, labels: Labels, policy: HealthPolicy): boolean {
  return isLeftOut(fact.health, labelHealth(labels, policy).policy);
}

/** Undefined for NAME.NETWORK, also of a container that lacks what the form needs. */
function pointerOf({ hostname, domainName }: ContainerFact, form: PtrForm): string | undefined {
  if (form === NAME_CHOICES_DEFAULTS.ptr || hostname === "") return undefined;
  if (form === "hostname" || hostname.includes(".")) return hostname;
  return domainName === "" ? undefined : `${hostname}.${domainName}`;
}
