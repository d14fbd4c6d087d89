/**
 * Directory: the facts about containers and networks, and the view of each container: its names and its upstream
 * routes. A change only touches the names of one container on its networks and that container's view. It is applied in
 * one synchronous step, so a query sees all of it or nothing.
 *
 * Names are compiled with the settings, so other settings need another directory. It is filled beside the current one, in
 * slices, and succeeds it when it knows as much. Each view is of one directory or of the other: no answer mixes the two.
 */
import { LIMITS } from "../../base/limits.ts";
import { type HealthPolicy, isLeftOut } from "../../base/model/health-policy.ts";
import type { DeclaredName } from "../../base/model/declared-name.ts";
import { DeclaredNames } from "../names/declared/declared-names.ts";
import { DefaultBridgeNames } from "../names/default-bridge/default-bridge.ts";
import { DockerNetworks } from "../names/docker/networks.ts";
import { ExtraNames } from "../names/extra/extra-names.ts";
import { EngineHostName, type HostGateway } from "../names/host-name/host-name.ts";
import { HostDomainNames } from "../names/host-domain/host-domain-names.ts";
import { OtherNetworks } from "../names/other-networks/other-networks.ts";
import { SwarmNetworks } from "../names/swarm/swarm-networks.ts";
import { SwarmPlaces } from "../names/swarm/swarm-places.ts";
import type { Reach } from "../names/zone/reach.ts";
import { ServiceZones } from "../names/zone/service-zones.ts";
import { ProjectNames } from "../names/projects/project-names.ts";
import { StoppedNames } from "../names/stopped/stopped-names.ts";
import { nameSources } from "../names/name-sources.ts";
import type { NameSource, NodeContext } from "../names/name-source.ts";
import type { SharedNames } from "../names/shared-names.ts";
import type { DefaultBridgeSetting } from "../../base/model/default-bridge-setting.ts";
import type { HostNameSetting } from "../../base/model/host-name-setting.ts";
import { LABEL_DEFAULTS, type LabelPolicy } from "../../base/model/label-policy.ts";
import type { NameChoices } from "../../base/model/name-choices.ts";
import { NO_RULES, type RouteRules } from "../../base/model/route-rules.ts";
import type { MissingContainerSetting } from "../../base/model/upstream-policy.ts";
import type { StoppedPolicy } from "../../base/model/stopped-policy.ts";
import type { VisibleNames } from "../../base/model/visible-names.ts";
import type { VisibleSetting } from "../../base/model/visible-setting.ts";
import type { Server, Upstreams, View } from "../../base/model/view.ts";
import { projectOf } from "./compose.ts";
import type { ContainerFact, NetworkFact, StoppedFact } from "./fact.ts";
import { FormerAddresses } from "./former-addresses.ts";
import { effectiveLabels } from "./labels.ts";
import { labelHealth } from "./label-choices.ts";
import { traitsOf } from "./name-traits.ts";
import { labelRoutes } from "./label-routes.ts";
import { routesOf } from "./routes.ts";
import { type Routing, routingOf } from "./routing.ts";
import { UpstreamContainers } from "./upstream-containers.ts";

export interface DirectoryOptions {
  /** How many servers of Docker's list are used. */
  readonly serversMax: number;
  /** dns11's own address: as a server of a container it would be a forwarding loop. */
  readonly ownAddress: string;
  /** The names of etcd. */
  readonly shared?: SharedNames | undefined;
  /** Called in the step in which names have changed: no answer that was given before is valid any more. */
  readonly onNames?: () => void;
}

export class Directory {
  readonly #options: DirectoryOptions;
  readonly #networks = new DockerNetworks();
  readonly swarm = new SwarmNetworks(this.#networks);
  readonly swarmPlaces = new SwarmPlaces(this.swarm);
  readonly #declared = new DeclaredNames();
  readonly #extra = new ExtraNames();
  readonly #defaultBridge = new DefaultBridgeNames();
  readonly #elsewhere = new OtherNetworks(this.#networks);
  readonly #zones: ServiceZones;
  readonly #projects = new ProjectNames((id) => this.network(id));
  readonly #stopped = new StoppedNames((network, address) => this.#networks.hasAddress(network, address));
  readonly #engineHost = new EngineHostName((id) => this.network(id));
  readonly #hostDomain = new HostDomainNames((id) => this.network(id));
  readonly #sources: readonly NameSource[];
  readonly #containers = new Map<string, ContainerFact>();
  #former = new FormerAddresses();
  readonly #upstreamContainers = new UpstreamContainers({
    networkOf: (id) => this.network(id),
    layersOf: (fact) => this.#routing(fact, undefined).layers,
  });
  #host: readonly Server[] = [];
  #rules: RouteRules = NO_RULES;
  #denied: readonly string[] = [];
  #labelPolicy: LabelPolicy = LABEL_DEFAULTS;
  #health: HealthPolicy | undefined;
  #choices: NameChoices | undefined;
  /** What it has succeeded, while there are views of it. */
  #predecessor: Directory | undefined;
  #onNames: (() => void) | undefined;

  constructor(options: DirectoryOptions) {
    this.#options = options;
    this.#onNames = options.onNames;
    this.#zones = new ServiceZones(this.#networks, options.shared?.remote);
    this.#sources = nameSources({
      hostDomain: this.#hostDomain,
      swarm: this.swarm,
      networks: this.#networks,
      declared: this.#declared,
      extra: this.#extra,
      defaultBridge: this.#defaultBridge,
      engineHost: this.#engineHost,
      elsewhere: this.#elsewhere,
      zones: this.#zones,
      projects: this.#projects,
      stopped: this.#stopped,
      stored: options.shared?.source,
    });
  }

  get containers(): ReadonlyMap<string, ContainerFact> {
    return this.#containers;
  }

  get former(): FormerAddresses {
    return this.#former;
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
    yield* this.#stopped.catchUp(current.#stopped);
  }

  /** Takes over from `current`, which knows the same by now, and keeps it up to date for its views. */
  succeed(current: Directory): void {
    [this.#former, current.#former] = [current.#former, this.#former];
    [this.#onNames, current.#onNames] = [current.#onNames, undefined];
    this.#host = current.#host;
    this.#denied = current.#denied;
    this.#engineHost.setGateway(current.#engineHost.gateway);
    this.#declared.copy(current.#declared);
    this.swarm.succeed(current.swarm);
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
    this.#onNames?.();
  }

  /** Sets whose names containers resolve. Existing views do not change. */
  setVisible(setting: VisibleSetting): void {
    this.#elsewhere.setSetting(setting);
    this.#hostDomain.setVisible(setting);
    this.#projects.setVisible(setting);
    this.#zones.setVisible(setting);
  }

  /** Sets the zones with names of services, for containers from now on. */
  setZones(zones: readonly string[]): void {
    this.#zones.setZones(zones);
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

  /** Sets what labels may configure, for containers from now on. */
  setLabelPolicy(policy: LabelPolicy): void {
    this.#labelPolicy = policy;
    this.#networks.setLabelPolicy(policy);
    this.#declared.setLabelPolicy(policy);
    this.#projects.setLabelPolicy(policy);
    this.#stopped.setLabelPolicy(policy);
    this.#extra.setLabelPolicy(policy);
    this.#zones.setLabelPolicy(policy);
  }

  /** Sets what health checks mean, where a label does not, for containers from now on; undefined: never anything. */
  setHealth(policy: HealthPolicy | undefined): void {
    this.#health = policy;
  }

  /** Sets what names are like, where a label does not, for containers from now on; undefined: always as in Docker. */
  setChoices(choices: NameChoices | undefined): void {
    this.#choices = choices;
  }

  /** Sets what names of containers that are not running mean, for those from now on; undefined: nothing. */
  setStopped(policy: StoppedPolicy | undefined): void {
    this.#stopped.setSetting(policy);
  }

  /** Sets the declared names. Existing views do not change. */
  setDeclared(names: readonly DeclaredName[]): void {
    this.#declared.set(names);
    this.#onNames?.();
  }

  network(id: string): NetworkFact | undefined {
    return this.#networks.fact(id);
  }

  putNetwork(fact: NetworkFact): void {
    this.#predecessor?.putNetwork(fact);
    this.#networks.put(fact);
    this.#onNames?.();
  }

  /** Removes a network that is gone. Its containers have been updated before. */
  removeNetwork(id: string): void {
    this.#predecessor?.removeNetwork(id);
    this.#networks.remove(id);
    this.#extra.removeNetwork(id);
    this.#hostDomain.removeNetwork(id);
    this.#onNames?.();
  }

  /**
   * Replaces a container's facts. Its networks must be known already. Returns whether views of other containers change,
   * once they are made again, because it is their upstream server.
   */
  putContainer(fact: ContainerFact): boolean {
    this.#predecessor?.putContainer(fact);
    const before = this.#containers.get(fact.id);
    if (before !== undefined) this.#former.note(before, fact);
    this.#join(fact, before);
    this.#stopped.remove(fact.id);
    this.#containers.set(fact.id, fact);
    this.#onNames?.();
    return this.#putUpstream(fact, before);
  }

  /** A container that is not running. While it was, its facts are still known. */
  putStopped(fact: StoppedFact): void {
    this.#predecessor?.putStopped(fact);
    this.#stopped.put(fact, this.#containers.get(fact.id));
    this.#onNames?.();
  }

  removeStopped(id: string): void {
    this.#predecessor?.removeStopped(id);
    this.#stopped.remove(id);
    this.#onNames?.();
  }

  /** The containers whose names are kept; undefined if none are. */
  get stoppedIds(): Iterable<string> | undefined {
    return this.#stopped.isOn ? this.#stopped.ids : undefined;
  }

  /** Returns whether views of other containers change, as `putContainer` does. */
  removeContainer(id: string): boolean {
    this.#predecessor?.removeContainer(id);
    const fact = this.#containers.get(id);
    if (fact !== undefined) {
      this.#networks.leave(fact);
      this.#extra.leave(fact);
      this.#zones.leave(id);
      this.#projects.leave(id);
      this.#hostDomain.leave(fact);
      this.#former.note(fact);
    }
    this.#defaultBridge.remove(id);
    this.#containers.delete(id);
    this.#onNames?.();
    return fact !== undefined && this.#upstreamContainers.remove(fact);
  }

  /** The names and upstreams of this container now. */
  viewOf(fact: ContainerFact, node?: NodeContext): View {
    const names = this.#sources.flatMap((source) => source.namesFor(fact, node) ?? []);
    const upstreams = this.#upstreams(fact, node);
    return node === undefined ? { names, upstreams } : { names, upstreams, budgetMs: LIMITS.nodeBudgetMs };
  }

  /** What the host resolves beside names below its domain: what is declared for everybody, and these zones. */
  namesOnHost(zones: readonly string[], reach: Reach, servers: readonly string[]): readonly VisibleNames[] {
    const declared = this.#declared.forEverybody();
    return [...(declared === undefined ? [] : [declared]), ...this.#zones.namesOnHost(zones, reach, servers)];
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

  #putUpstream(fact: ContainerFact, before: ContainerFact | undefined): boolean {
    const { layer } = labelRoutes(effectiveLabels(fact, this.#labelPolicy), this.#labelPolicy.servers);
    return this.#upstreamContainers.put(fact, layer, before);
  }

  #upstreams(fact: ContainerFact, node: NodeContext | undefined): Upstreams {
    const { layers, listed, listedBy, hasGateway, isUnclear } = this.#routing(fact, node);
    const { nameservers } = fact;
    const { isNdotsSet } = this.#rules;
    return {
      routes: routesOf({
        layers,
        containers: { find: this.#upstreamContainers.finderFor(fact), fallsBack: this.#upstreamContainers.fallsBack },
        fallback: listed,
        fallbackBy: listedBy,
        host: this.#host,
        hasExternalAccess: hasGateway || isUnclear,
      }),
      isNdotsSet: isNdotsSet || (!isUnclear && nameservers.kind !== "unknown" && nameservers.isNdotsSet),
    };
  }

  #routing(fact: ContainerFact, node: NodeContext | undefined): Routing {
    return routingOf(fact, node, {
      serversMax: this.#options.serversMax,
      ownAddress: this.#options.ownAddress,
      joined: this.#networks.joinedBy(fact),
      rules: this.#rules,
      labelPolicy: this.#labelPolicy,
      denied: this.#denied,
      host: this.#host,
      isLeftToDocker: this.swarm.leavesToDocker(fact, node),
    });
  }
}
