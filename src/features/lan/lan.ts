import { isIPv4 } from "node:net";
import type { Cause } from "../../api/causes.ts";
import type { ListenReports } from "../../api/listener.ts";
import type { Status } from "../../api/status.ts";
import { Fault } from "../../base/lib/fault.ts";
import type { Server, Upstreams, View } from "../../base/model/view.ts";
import type { Settings } from "../../config/settings.ts";
import type { Decision } from "../../container/attach/decision.ts";
import {
  type ContainerFact,
  type NetworkFact,
  type EndpointFact,
  outsiderEndpoint,
  outsiderFact,
} from "../../container/facts/fact.ts";
import { isBoundAt, ON_THE_WIRE, publishedMember } from "../../container/names/services/published-member.ts";
import { DNS_PORT } from "../../container/rules/rewritten-port.ts";
import { cause } from "../../control/causes/situation.ts";
import type { FailedName } from "../../control/situation/ports.ts";
import type { Family } from "../../metrics/exposition.ts";
import { hostAddressFamilies } from "../../metrics/metrics.ts";
import type { EngineCore, Outsiders, RunCore, Running } from "../contract.ts";
import { Lan, listenId } from "./addresses.ts";
import { type ListenEntry, entriesOf } from "./feature.ts";
import { addressBytes } from "../../base/model/address.ts";
import type { LabelPolicy } from "../../base/model/name-choices.ts";
import type { OwnName, QuestionName, NameSearch, VisibleNames } from "../../base/model/visible-names.ts";
import { HostZone } from "../../container/names/host-domain/host-zone.ts";
import { EVERYWHERE } from "../../container/names/services/member.ts";
import { ZoneMembers } from "../../container/names/services/members.ts";
import { ReachableAddresses } from "../../container/names/services/reachable-addresses.ts";
import { DnsZone } from "../../container/names/source/dns-zone.ts";
import { ZoneNames } from "../../container/names/services/zone-names.ts";

const REFUSED: Upstreams = {
  routes: [
    {
      suffix: new Uint8Array(0),
      labelCount: 0,
      servers: [],
      isLocal: false,
      isRefused: true,
      by: "the setting listen",
    },
  ],
  isNdotsSet: false,
};

export function open(run: RunCore): Running {
  return new LanInRun(run);
}

/** What there is in a run for the containers of an engine. */
interface Parts {
  readonly engine: EngineCore;
  readonly lan: Lan;
}

/** Addresses of the host at which others than containers may ask, with what they get of an engine's containers. */
class LanInRun implements Running, Outsiders {
  readonly #run: RunCore;
  /** Undefined inside of a KIND node. */
  #parts: Parts | undefined;
  #settings: Settings;
  /** By the names of entries. */
  #published = new Map<string, PublishedNames>();

  constructor(run: RunCore) {
    this.#run = run;
    this.#settings = run.settings;
  }

  engine(engine: EngineCore): void {
    const lan = new Lan(entriesOf(this.#settings), {
      ...engine,
      openEndpoint: engine.openSubnetEndpoint,
      dial: (server, type) => {
        if (server.from !== "host") throw noNamespace(server);
        return engine.dialFromHost(server, type);
      },
      viewOf: (entry) => this.#viewOf(engine, entry),
      problemOf: (entry) => problemOf(engine, entry),
      quarantineOf: (entry) => engine.quarantineOf(listenId(entry.name)),
      publisherAt: (address) => publisherAt(engine, address),
      onEvent: this.#run.onEvent,
    });
    this.#parts = { engine, lan };
    this.#publish();
  }

  configure(settings: Settings): void {
    this.#settings = settings;
    this.#publish();
    this.#parts?.lan.configure(entriesOf(settings));
  }

  viewsChanged(): void {
    this.#parts?.lan.updateViews();
  }

  put(fact: ContainerFact): void {
    for (const names of this.#published.values()) names.put(fact);
  }

  remove(id: string): void {
    for (const names of this.#published.values()) names.remove(id);
  }

  causeOf({ client, isRefused }: FailedName): Cause | undefined {
    if (!isRefused) return undefined;
    const advice = "set forward: true there if these machines may use the host's servers";
    return cause("not-forwarded", `nothing is forwarded for ${client.name}, which the setting listen names`, {
      advice,
    });
  }

  status(): Pick<Status, "listen"> {
    return { listen: this.#report ?? null };
  }

  metrics(): readonly Family[] {
    const report = this.#report;
    if (report === undefined) return [];
    const places = report.entries.map((each) => {
      const isServing = each.addresses.every(({ state }) => state === "serving");
      return { ...each, name: listenId(each.name), isServing };
    });
    return hostAddressFamilies(places, { name: "listen", refused: report.dropped });
  }

  get isSettled(): boolean {
    return this.#parts?.lan.isSettled !== false;
  }

  async pause(): Promise<void> {
    await this.#parts?.lan.pause();
  }

  resume(): void {
    this.#parts?.lan.resume();
  }

  async stop(isHandedOver: boolean): Promise<void> {
    await (isHandedOver ? this.#parts?.lan.abandon() : this.#parts?.lan.stop());
  }

  get outsiders(): Outsiders {
    return this;
  }

  get facts(): readonly ContainerFact[] {
    if (this.#parts === undefined) return [];
    const { engine, lan } = this.#parts;
    return lan.entries.map((entry) => factOf(engine, entry));
  }

  decisionOf(id: string): Decision | undefined {
    const entry = this.#entryOf(id);
    if (entry === undefined) return undefined;
    const { addresses = [] } = this.#parts?.lan.entryReports.find(({ name }) => name === entry.name) ?? {};
    const reasons = addresses.flatMap(({ reason }) => reason ?? []);
    const reason = reasons.length > 0 ? reasons.join("; ") : `it asks at ${entry.addresses.join(" and ")} of this host`;
    return { kind: "skip", code: "listen", reason };
  }

  viewOf(id: string): View | undefined {
    const entry = this.#entryOf(id);
    return entry && this.#parts && this.#viewOf(this.#parts.engine, entry);
  }

  unreachable(id: string): Fault | undefined {
    return this.#entryOf(id) && otherMachine(id);
  }

  /** Undefined where no entry is set. */
  get #report(): ListenReports | undefined {
    const lan = this.#parts?.lan;
    return lan === undefined || lan.entries.length === 0 ? undefined : lan.report;
  }

  #entryOf(id: string): ListenEntry | undefined {
    return this.#parts?.lan.entries.find(({ name }) => listenId(name) === id);
  }

  #publish(): void {
    const { hostDomain: domain, zones, labels } = this.#settings;
    const engine = this.#parts?.engine;
    if (engine === undefined) return;
    const networkOf = (id: string): NetworkFact | undefined => engine.directory().network(id);
    this.#published = new Map(
      entriesOf(this.#settings)
        .filter(({ view }) => view.kind === "published")
        .map(({ name, addresses }) => [name, new PublishedNames({ domain, zones, labels, addresses, networkOf })]),
    );
    for (const fact of engine.directory().containers.values()) this.put(fact);
  }

  #viewOf(engine: EngineCore, entry: ListenEntry): View {
    const directory = engine.directory();
    const { view, forwards, name } = entry;
    const fact = factOf(engine, entry);
    const upstreams = forwards ? directory.upstreamsFromHost(fact) : REFUSED;
    // Without the network, too: names that are dns11's own are not for the host's servers.
    if (view.kind === "network") return { names: directory.names.namesFor(fact, undefined), upstreams };
    const published = this.#published.get(name)?.sources ?? [];
    return { names: [...directory.names.namesForEverybody(), ...published], upstreams };
  }
}

/** Whoever asks, as one more container, so that tail, explain and failures can name it: on no network, or on the one whose view it has. */
function factOf({ directory }: EngineCore, { name, view, addresses }: ListenEntry): ContainerFact {
  const network = view.kind === "network" ? directory().networkNamed(view.name) : undefined;
  const fact = outsiderFact({ id: listenId(name), networkMode: "host", endpoints: [] });
  if (network === undefined) return fact;
  // It reaches the network's containers by way of the host, whose addresses are its gateways.
  const place = {
    networkId: network.id,
    networkName: network.name,
    ipv4Gateway: addresses.find((each) => isIPv4(each)),
    ipv6Gateway: addresses.find((each) => !isIPv4(each)),
  };
  return { ...fact, endpoints: [outsiderEndpoint(fact.id, place)] };
}

function problemOf({ directory }: EngineCore, { view }: ListenEntry): string | undefined {
  if (view.kind === "published" || directory().networkNamed(view.name) !== undefined) return undefined;
  return `no running container is on a network "${view.name}", so it has no names`;
}

function publisherAt({ directory }: EngineCore, address: string): string | undefined {
  for (const { name, ports } of directory().containers.values()) {
    const { bound = [] } = ports;
    if (bound.some((port) => port.hostPort === DNS_PORT && isBoundAt(port, address))) return name;
  }
  return undefined;
}

function otherMachine(name: string): Fault {
  return new Fault("NAMESPACE_ELSEWHERE", `"${name}" stands for other machines, from which dns11 cannot query`, {
    remedy: "Query from one of them, for example with dig, or use dns11 explain.",
  });
}

/** Whoever asks has no namespace, from which it could ask a server of its own, or Docker's resolver. */
function noNamespace({ from }: Server): Fault {
  return new Fault("LISTEN_NO_SERVER", `A server that is asked from "${from}" cannot be asked for other machines`, {
    remedy: "Have the route name a server by its address.",
  });
}

interface PublishedNamesParts {
  /** The domain of container names on the host. */
  readonly domain: string;
  readonly zones: readonly string[];
  readonly labels: LabelPolicy;
  /** Those of the machine, at most one of each family. */
  readonly addresses: readonly string[];
  readonly networkOf: (id: string) => NetworkFact | undefined;
}

/** Whoever asks here is on no network of containers, and so is told apart by none. */
const EQUAL_RANK = (): number => 0;
/** In explanations, where another machine's name would be. */
const THIS_MACHINE = "this machine";

/**
 * The containers that other machines reach through this one, by the names that they have on the host and in zones.
 * A container with published ports has the machine's own address, at which it was asked; one on a macvlan or ipvlan network has its
 * own. Others do not exist here.
 */
export class PublishedNames {
  readonly #parts: PublishedNamesParts;
  readonly #domain: HostZone;
  readonly #members = new ZoneMembers();
  readonly #zones: ZoneNames | undefined;
  readonly #endpoints = new Map<string, readonly EndpointFact[]>();

  constructor(parts: PublishedNamesParts) {
    const { domain, zones, addresses: servers } = parts;
    this.#parts = parts;
    this.#domain = new HostZone(domain, "that other machines can reach");
    const reachable = new ReachableAddresses((endpoint) => endpoint, EQUAL_RANK);
    const lookup = { members: this.#members, remote: undefined, reachable, servers };
    this.#zones =
      zones.length === 0
        ? undefined
        : new ZoneNames(
            zones.map((name) => new DnsZone(name)),
            lookup,
          );
  }

  /** The zones first, as on the host. */
  get sources(): readonly VisibleNames[] {
    return [...(this.#zones === undefined ? [] : [this.#zones]), withoutPointers(this.#domain)];
  }

  put(fact: ContainerFact): void {
    const endpoints = this.#reached(fact);
    this.#domain.put(fact, this.#endpoints.get(fact.id) ?? [], endpoints);
    this.#endpoints.set(fact.id, endpoints);
    this.#putMember(fact);
  }

  remove(id: string): void {
    this.#domain.remove(id, this.#endpoints.get(id) ?? []);
    this.#endpoints.delete(id);
    this.#members.remove(id);
  }

  /** The container's endpoints, with the addresses at which others reach it. */
  #reached({ endpoints, ports: { bound = [] } }: ContainerFact): EndpointFact[] {
    const { addresses, networkOf } = this.#parts;
    const [ipv4, ipv6] = [4, 16].map((length) =>
      addresses.find((each) => addressBytes(each)?.length === length && bound.some((port) => isBoundAt(port, each))),
    );
    return endpoints.flatMap((endpoint) => {
      if (ON_THE_WIRE.has(networkOf(endpoint.networkId)?.driver ?? "")) return [endpoint];
      return ipv4 === undefined && ipv6 === undefined ? [] : [{ ...endpoint, ipv4, ipv6 }];
    });
  }

  #putMember(fact: ContainerFact): void {
    const { labels, addresses, networkOf } = this.#parts;
    this.#members.remove(fact.id);
    if (this.#zones === undefined) return;
    try {
      const context = { routedNetworks: [], labels, addresses, networkOf };
      const { project, service, hosts, isReady, reach, ports, v4, v6 } = publishedMember(fact, context);
      if (reach === "swarm") return;
      const endpoints = [{ networkId: EVERYWHERE, v4, v6 }];
      const remote = { machine: THIS_MACHINE, reach, unless: [] };
      this.#members.add({ project, service, hosts, id: fact.id, isReady, ports, endpoints, remote });
    } catch {
      // It is in no service, or others do not reach it.
    }
  }
}

/** Many containers have the address of the machine: it is that of none. */
function withoutPointers(zone: HostZone): VisibleNames {
  return {
    kind: zone.kind,
    places: zone.places,
    find: (name: QuestionName, search: NameSearch): number => zone.find(name, search),
    pointer: () => undefined,
    list: (): Iterable<OwnName> => zone.list(),
  };
}
