/**
 * Directory: the facts about containers and networks, and the view of each container: its names and its upstream
 * routes. A change only touches the names of one container on its networks and that container's view. It is applied in
 * one synchronous step, so a query sees all of it or nothing.
 */
import { LIMITS } from "../../base/limits.ts";
import { type HealthPolicy, isLeftOut } from "../../base/model/health-policy.ts";
import type { DeclaredName } from "../../base/model/declared-name.ts";
import { DeclaredNames } from "../names/declared/declared-names.ts";
import { DefaultBridgeNames } from "../names/default-bridge/default-bridge.ts";
import { DockerNetworks } from "../names/docker/networks.ts";
import { ExtraNames } from "../names/extra/extra-names.ts";
import { EngineHostName, HOST_DOCKER_INTERNAL, type HostGateway } from "../names/host-name/host-name.ts";
import { HostDomainNames } from "../names/host-domain/host-domain-names.ts";
import { OtherNetworks } from "../names/other-networks/other-networks.ts";
import { StoredNames } from "../names/etcd/stored-names.ts";
import { ServiceZones } from "../names/zone/service-zones.ts";
import { ProjectNames } from "../names/projects/project-names.ts";
import { StoppedNames } from "../names/stopped/stopped-names.ts";
import { nameSources } from "../names/name-sources.ts";
import type { NodeContext } from "../names/name-source.ts";
import type { DefaultBridgeSetting } from "../../base/model/default-bridge-setting.ts";
import type { HostNameSetting } from "../../base/model/host-name-setting.ts";
import { LABEL_DEFAULTS, type LabelPolicy } from "../../base/model/label-policy.ts";
import type { NameChoices } from "../../base/model/name-choices.ts";
import { NO_RULES, type RouteRules } from "../../base/model/route-rules.ts";
import type { MissingContainerSetting } from "../../base/model/upstream-policy.ts";
import type { StoppedPolicy } from "../../base/model/stopped-policy.ts";
import type { VisibleSetting } from "../../base/model/visible-setting.ts";
import { DNS_PORT } from "../../base/model/server-text.ts";
import type { Server, Upstreams, View } from "../../base/model/view.ts";
import { projectOf } from "./compose.ts";
import type { ContainerFact, NameserversFact, NetworkFact, StoppedFact } from "./fact.ts";
import { FormerAddresses } from "./former-addresses.ts";
import { effectiveLabels } from "./labels.ts";
import { labelHealth } from "./label-choices.ts";
import { traitsOf } from "./name-traits.ts";
import { DNS_LABEL, labelRoutes } from "./label-routes.ts";
import { listedServers } from "./listed-servers.ts";
import { mayReachOutside, reachesOutside } from "./outside-access.ts";
import { type RouteLayer, routesOf, routeLayer } from "./routes.ts";
import { UpstreamContainers } from "./upstream-containers.ts";

export interface DirectoryOptions {
  /** How many servers of Docker's list are used. */
  readonly serversMax: number;
  /** dns11's own address: as a server of a container it would be a forwarding loop. */
  readonly ownAddress: string;
  /** Called in the step in which names have changed: no answer that was given before is valid any more. */
  readonly onNames?: () => void;
}

/** Docker's embedded DNS, reached by the passthrough. */
const DOCKER_SERVER: Server = { from: "docker", address: "127.0.0.11", port: DNS_PORT };
/** The origin of the default servers, for `dns11 explain`. */
const FALLBACK_ORIGINS: Readonly<Record<NameserversFact["kind"], string>> = {
  listed: "Docker's list for this container",
  host: "the host's current resolv.conf",
  captured: "resolv.conf of the container",
  unknown: "",
};

/** What the routes of a container are merged from. */
interface Routing {
  readonly layers: readonly RouteLayer[];
  /** What Docker would query, and where that list comes from. */
  readonly listed: readonly Server[];
  readonly listedBy: string;
  readonly hasGateway: boolean;
  readonly isUnclear: boolean;
}

export class Directory {
  readonly #options: DirectoryOptions;
  readonly #networks = new DockerNetworks();
  readonly #declared = new DeclaredNames();
  readonly #extra = new ExtraNames();
  readonly #defaultBridge = new DefaultBridgeNames();
  readonly #elsewhere = new OtherNetworks(this.#networks);
  readonly #zones = new ServiceZones(this.#networks);
  readonly #projects = new ProjectNames((id) => this.network(id));
  readonly #stopped = new StoppedNames((network, address) => this.#networks.hasAddress(network, address));
  /** The names that machines share. */
  readonly stored = new StoredNames();
  readonly #engineHost = new EngineHostName((id) => this.network(id));
  readonly #hostDomain = new HostDomainNames((id) => this.network(id));
  readonly #sources = nameSources({
    hostDomain: this.#hostDomain,
    networks: this.#networks,
    declared: this.#declared,
    extra: this.#extra,
    defaultBridge: this.#defaultBridge,
    engineHost: this.#engineHost,
    elsewhere: this.#elsewhere,
    zones: this.#zones,
    projects: this.#projects,
    stopped: this.#stopped,
    stored: this.stored,
  });
  readonly #containers = new Map<string, ContainerFact>();
  readonly former = new FormerAddresses();
  readonly #upstreamContainers = new UpstreamContainers({
    networkOf: (id) => this.network(id),
    layersOf: (fact) => this.#routing(fact, undefined).layers,
  });
  #host: readonly Server[] = [];
  #rules: RouteRules = NO_RULES;
  #denied: readonly string[] = [];
  #labelPolicy: LabelPolicy = LABEL_DEFAULTS;
  #serversMax: number;
  #health: HealthPolicy | undefined;
  #choices: NameChoices | undefined;
  #isConfiguring = false;

  constructor(options: DirectoryOptions) {
    this.#options = options;
    this.#serversMax = options.serversMax;
  }

  /** Applies several settings; the containers' names are made again once, and not for each of them. */
  configure(apply: () => void): void {
    this.#isConfiguring = true;
    try {
      apply();
    } finally {
      this.#isConfiguring = false;
      this.#rejoin();
    }
  }

  get containers(): ReadonlyMap<string, ContainerFact> {
    return this.#containers;
  }

  /** Sets the host's servers. Existing views do not change. */
  setHost(servers: readonly Server[]): void {
    this.#host = servers;
  }

  /** Sets the addresses of the engine's host for containers. Returns whether views change, once they are made again. */
  setHostGateway(gateway: HostGateway): boolean {
    return this.#engineHost.setGateway(gateway);
  }

  /** Sets whether containers resolve host.docker.internal without an entry. Existing views do not change. */
  setHostName(setting: HostNameSetting): void {
    this.#engineHost.setForContainers(setting === "gateway");
  }

  /** Sets whether containers on the default bridge resolve each other. Existing views do not change. */
  setDefaultBridge(setting: DefaultBridgeSetting): void {
    this.#defaultBridge.setSetting(setting);
    this.#hostDomain.setDefaultBridge(setting);
  }

  /** Sets the domain of container names on the host, while they resolve there. Existing views do not change. */
  setHostDomain(domain: string | undefined): void {
    this.#hostDomain.setDomain(domain, this.#containers.values());
    this.#options.onNames?.();
  }

  /** Sets whose names containers resolve. Existing views do not change. */
  setVisible(setting: VisibleSetting): void {
    this.#elsewhere.setSetting(setting);
    this.#hostDomain.setVisible(setting);
    this.#projects.setVisible(setting);
    this.#zones.setVisible(setting);
  }

  /** Sets the zones with names of services. Existing views do not change. */
  setZones(zones: readonly string[]): void {
    this.#zones.setZones(zones);
    this.#rejoin();
  }

  /** Sets the routes of the settings. Existing views do not change. */
  setRules(rules: RouteRules): void {
    this.#rules = rules;
    this.#upstreamContainers.setRules(rules);
  }

  /** Sets what happens where a container that is an upstream server is missing. Existing views do not change. */
  setMissingContainer(setting: MissingContainerSetting): void {
    this.#upstreamContainers.setMissing(setting);
  }

  /** Sets whether every running container is known. Returns whether views change, once they are made again. */
  setComplete(isComplete: boolean): boolean {
    return this.#upstreamContainers.setComplete(isComplete);
  }

  /** Sets domains that exist in no upstream, unless settings or labels route them. Existing views do not change. */
  setDenied(domains: readonly string[]): void {
    this.#denied = domains;
  }

  /** Sets what labels may configure. Existing views do not change. */
  setLabelPolicy(policy: LabelPolicy): void {
    this.#labelPolicy = policy;
    this.#networks.setLabelPolicy(policy);
    this.#declared.setLabelPolicy(policy);
    this.#projects.setLabelPolicy(policy);
    this.#stopped.setLabelPolicy(policy);
    this.#extra.setLabelPolicy(policy);
    this.#zones.setLabelPolicy(policy);
    for (const fact of this.#containers.values()) this.#putUpstream(fact, fact);
    this.#rejoin();
  }

  /** Sets what health checks mean, where a label does not; undefined: never anything. */
  setHealth(policy: HealthPolicy | undefined): void {
    this.#health = policy;
    this.#rejoin();
  }

  /** Sets what containers' names are like, where a label does not; undefined: always as in Docker. */
  setChoices(choices: NameChoices | undefined): void {
    this.#choices = choices;
    this.#rejoin();
  }

  /** Sets what names of containers that are not running mean; undefined: nothing. Existing views do not change. */
  setStopped(policy: StoppedPolicy | undefined): void {
    this.#stopped.setSetting(policy);
  }

  /** Sets the declared names. Existing views do not change. */
  setDeclared(names: readonly DeclaredName[]): void {
    this.#declared.set(names);
    this.#options.onNames?.();
  }

  /** Sets how many servers of Docker's list are used. */
  setServersMax(serversMax: number): void {
    this.#serversMax = serversMax;
  }

  network(id: string): NetworkFact | undefined {
    return this.#networks.fact(id);
  }

  putNetwork(fact: NetworkFact): void {
    this.#networks.put(fact);
    this.#options.onNames?.();
  }

  /** Removes a network that is gone. Its containers have been updated before. */
  removeNetwork(id: string): void {
    this.#networks.remove(id);
    this.#extra.removeNetwork(id);
    this.#hostDomain.removeNetwork(id);
    this.#options.onNames?.();
  }

  /**
   * Replaces a container's facts. Its networks must be known already. Returns whether views of other containers change,
   * once they are made again, because it is their upstream server.
   */
  putContainer(fact: ContainerFact): boolean {
    const before = this.#containers.get(fact.id);
    if (before !== undefined) this.former.note(before, fact);
    this.#join(fact, before);
    this.#stopped.remove(fact.id);
    this.#containers.set(fact.id, fact);
    this.#options.onNames?.();
    return this.#putUpstream(fact, before);
  }

  /** A container that is not running. While it was, its facts are still known. */
  putStopped(fact: StoppedFact): void {
    this.#stopped.put(fact, this.#containers.get(fact.id));
  }

  removeStopped(id: string): void {
    this.#stopped.remove(id);
  }

  /** The containers whose names are kept; undefined if none are. */
  get stoppedIds(): Iterable<string> | undefined {
    return this.#stopped.isOn ? this.#stopped.ids : undefined;
  }

  /** Returns whether views of other containers change, as `putContainer` does. */
  removeContainer(id: string): boolean {
    const fact = this.#containers.get(id);
    if (fact !== undefined) {
      this.#networks.leave(fact);
      this.#extra.leave(fact);
      this.#zones.leave(id);
      this.#projects.leave(id);
      this.#hostDomain.leave(fact);
      this.former.note(fact);
    }
    this.#defaultBridge.remove(id);
    this.#containers.delete(id);
    this.#options.onNames?.();
    return fact !== undefined && this.#upstreamContainers.remove(fact);
  }

  /** The names and upstreams of this container now. */
  viewOf(fact: ContainerFact, node?: NodeContext): View {
    const names = this.#sources.flatMap((source) => source.namesFor(fact, node) ?? []);
    const upstreams = this.#upstreams(fact, node);
    return node === undefined ? { names, upstreams } : { names, upstreams, budgetMs: LIMITS.nodeBudgetMs };
  }

  #join(fact: ContainerFact, before: ContainerFact | undefined): void {
    const labels = effectiveLabels(fact, this.#labelPolicy);
    const health = this.#health;
    const isLastResort = health !== undefined && isLeftOut(fact.health, labelHealth(labels, health).policy);
    const traits = { isLastResort, ...traitsOf(fact, labels, this.#choices) };
    const project = projectOf(fact, this.#labelPolicy);
    this.#networks.join(fact, before, { ...traits, project });
    this.#projects.join(fact, traits);
    this.#extra.join(fact, before, traits);
    this.#defaultBridge.put(fact, { ...traits, project });
    this.#zones.join(fact);
    this.#hostDomain.join(fact, before);
  }

  #rejoin(): void {
    if (this.#isConfiguring) return;
    for (const fact of this.#containers.values()) this.#join(fact, fact);
    this.#options.onNames?.();
  }

  #putUpstream(fact: ContainerFact, before: ContainerFact | undefined): boolean {
    const { layer } = labelRoutes(effectiveLabels(fact, this.#labelPolicy), this.#labelPolicy.servers);
    return this.#upstreamContainers.put(fact, layer, before);
  }

  #upstreams(fact: ContainerFact, node: NodeContext | undefined): Upstreams {
    const { layers, listed, listedBy, hasGateway, isUnclear } = this.#routing(fact, node);
    const { nameservers } = fact;
    const { isNdotsSet } = this.#rules;
    const { fallsBack } = this.#upstreamContainers;
    return {
      routes: routesOf({
        layers,
        containers: { find: this.#upstreamContainers.finderFor(fact), fallsBack },
        fallback: listed,
        fallbackBy: listedBy,
        host: this.#host,
        hasExternalAccess: hasGateway || isUnclear,
      }),
      isNdotsSet: isNdotsSet || (!isUnclear && nameservers.kind !== "unknown" && nameservers.isNdotsSet),
    };
  }

  #routing(fact: ContainerFact, node: NodeContext | undefined): Routing {
    const { labels, imageLabels, nameservers } = fact;
    const joined = this.#networks.joinedBy(fact);
    const { everyone, networks } = this.#rules;
    const { trustsImages, servers: labelServers } = this.#labelPolicy;
    const hasGateway = joined.some(reachesOutside);
    // Some drivers give external access in ways the API does not report; only Docker knows then whether to use the
    // host's servers.
    const isUnclear = !hasGateway && joined.some(mayReachOutside);
    const ownAddresses = [this.#options.ownAddress, ...(node?.ownAddresses ?? [])];
    // KIND's entrypoint moves Docker's resolver to another address.
    const dockerServers = [
      DOCKER_SERVER,
      ...(node?.ownAddresses ?? []).map((address): Server => ({ ...DOCKER_SERVER, address })),
    ];
    const listed = isUnclear
      ? dockerServers
      : listedServers(nameservers, { host: this.#host, dockerServers, ownAddresses, serversMax: this.#serversMax });
    const isOwn = nameservers.kind === "listed" && nameservers.isOwn && !isUnclear;
    // By precedence: the operator, the container's creator, the author of its image.
    const layers: RouteLayer[] = [
      ...joined.map(({ network: { name } }) =>
        routeLayer(`the setting dns of network "${name}"`, networks.get(name) ?? []),
      ),
      routeLayer("the setting dns", everyone),
      routeLayer("the setting host-names", [{ domains: this.#denied, servers: [], isLocal: true }]),
      routeLayer(
        "the setting kind.host-docker-internal",
        node?.hostDockerInternal === "deny" ? [{ domains: [HOST_DOCKER_INTERNAL], servers: [], isLocal: true }] : [],
      ),
      routeLayer(`label ${DNS_LABEL} of the container`, labelRoutes(labels, labelServers).layer),
      routeLayer("--dns of the container", isOwn ? [{ domains: [""], servers: listed, isLocal: false }] : []),
      routeLayer(
        `label ${DNS_LABEL} of the image`,
        trustsImages ? labelRoutes(imageLabels.labels, labelServers).layer : [],
      ),
    ];
    const listedBy =
      listed === dockerServers
        ? "Docker's resolver: the container's list of servers cannot be determined"
        : FALLBACK_ORIGINS[nameservers.kind];
    return { layers, listed, listedBy, hasGateway, isUnclear };
  }
}
