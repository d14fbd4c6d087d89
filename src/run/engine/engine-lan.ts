/**
 * EngineLan: addresses of the host at which others than containers may ask, with what they get of an engine's containers.
 */
import { Fault } from "../../base/lib/fault.ts";
import { eventLogger } from "../../base/log/event-logger.ts";
import { type ListenEntry, listenId } from "../../base/model/listen-policy.ts";
import type { ListenReports } from "../../base/model/listen-report.ts";
import type { Server, Upstreams, View } from "../../base/model/view.ts";
import type { RunSettings } from "../../config/settings.ts";
import type { Decision } from "../../container/attach/decision.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { HostNames } from "../../container/host/host-names.ts";
import { lanFact, lanFactOn } from "../../container/lan/lan-fact.ts";
import { Lan } from "../../container/lan/lan.ts";
import { PublishedNames } from "../../container/lan/published-names.ts";
import { dialIn } from "../../container/namespace/dial.ts";
import { isBoundAt } from "../../container/names/zone/published-member.ts";
import { DNS_PORT } from "../../container/rules/rewritten-port.ts";
import type { Directory } from "../../container/registry/directory.ts";
import type { ContainerSideParts } from "../container-side.ts";
import type { EngineAccess } from "./engine-link.ts";

/** The parts of an EngineSide; the directory is the current one. */
interface Side {
  readonly directory: Directory;
  readonly hostNames: HostNames;
}

type NameSettings = Pick<RunSettings, "hostNames" | "zones" | "labels">;

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

export class EngineLan {
  readonly lan: Lan;
  readonly #side: Side;
  readonly #policies: ContainerSideParts["querySide"]["policies"];
  #settings: NameSettings;
  /** By the names of entries. */
  #published = new Map<string, PublishedNames>();

  constructor(
    side: Side,
    { settings, platform, querySide, quarantines, hold, inherit, startAfter, log }: ContainerSideParts,
    link: EngineAccess,
  ) {
    this.#side = side;
    this.#policies = querySide.policies;
    this.#settings = settings;
    this.#publish(settings.listen);
    this.lan = new Lan(settings.listen, {
      ...platform,
      host: link.host,
      openEndpoint: querySide.openSubnetEndpoint,
      dial: (server, type) => {
        if (server.from !== "host") throw noNamespace(server);
        return dialIn(platform.runner, link.host().network, server, type, side.hostNames.isOn);
      },
      viewOf: (entry) => this.#viewOf(entry),
      problemOf: (entry) => this.#problemOf(entry),
      quarantineOf: (entry) => quarantines.reasonFor(listenId(entry.name)),
      publisherAt: (address) => this.#publisherAt(address),
      keep: hold,
      inherit,
      startAfter,
      onEvent: eventLogger(log),
    });
  }

  /** null where no entry is set. */
  get report(): ListenReports | null {
    return this.lan.entries.length === 0 ? null : this.lan.report;
  }

  /** Whoever asks, as containers. */
  get facts(): readonly ContainerFact[] {
    return this.lan.entries.map((entry) => this.#factOf(entry));
  }

  /** Undefined for the id of a container. */
  decisionOf(id: string): Decision | undefined {
    const entry = this.#entryOf(id);
    if (entry === undefined) return undefined;
    const { addresses = [] } = this.lan.entryReports.find(({ name }) => name === entry.name) ?? {};
    const reasons = addresses.flatMap(({ reason }) => reason ?? []);
    const reason = reasons.length > 0 ? reasons.join("; ") : `it asks at ${entry.addresses.join(" and ")} of this host`;
    return { kind: "skip", code: "listen", reason };
  }

  /** Undefined for the id of a container. */
  viewOf(id: string): View | undefined {
    const entry = this.#entryOf(id);
    return entry && this.#viewOf(entry);
  }

  configure(settings: NameSettings & Pick<RunSettings, "listen">): void {
    this.#settings = settings;
    this.#publish(settings.listen);
    this.lan.configure(settings.listen);
  }

  /** Runs what changes the networks that are known. */
  during(change: () => void): void {
    change();
    this.lan.updateViews();
    // Whoever asks is on a network, or no longer.
    if (this.lan.entries.length > 0) this.#policies.containersChanged();
  }

  put(fact: ContainerFact): void {
    for (const names of this.#published.values()) names.put(fact);
  }

  remove(id: string): void {
    for (const names of this.#published.values()) names.remove(id);
  }

  #entryOf(id: string): ListenEntry | undefined {
    return this.lan.entries.find(({ name }) => listenId(name) === id);
  }

  #publish(entries: readonly ListenEntry[]): void {
    const { hostNames, zones, labels } = this.#settings;
    const networkOf = this.#side.directory.network.bind(this.#side.directory);
    this.#published = new Map(
      entries
        .filter(({ view }) => view.kind === "published")
        .map(({ name, addresses }) => [
          name,
          new PublishedNames({ domain: hostNames.domain, zones, labels, addresses, networkOf }),
        ]),
    );
    for (const fact of this.#side.directory.containers.values()) this.put(fact);
  }

  #factOf(entry: ListenEntry): ContainerFact {
    const { view } = entry;
    const network = view.kind === "network" ? this.#side.directory.networkNamed(view.name) : undefined;
    return network === undefined ? lanFact(entry) : lanFactOn(entry, network);
  }

  #viewOf(entry: ListenEntry): View {
    const { directory } = this.#side;
    const { view, forwards, name } = entry;
    const fact = this.#factOf(entry);
    const upstreams = forwards ? directory.upstreamsFromHost(fact) : REFUSED;
    // Without the network, too: names that are dns11's own are not for the host's servers.
    if (view.kind === "network") return { names: directory.names.namesFor(fact, undefined), upstreams };
    const declared = directory.names.declared.forEverybody();
    const published = this.#published.get(name)?.sources ?? [];
    return { names: [...(declared === undefined ? [] : [declared]), ...published], upstreams };
  }

  #problemOf({ view }: ListenEntry): string | undefined {
    if (view.kind === "published" || this.#side.directory.networkNamed(view.name) !== undefined) return undefined;
    return `no running container is on a network "${view.name}", so it has no names`;
  }

  #publisherAt(address: string): string | undefined {
    for (const { name, ports } of this.#side.directory.containers.values()) {
      const { bound = [] } = ports;
      if (bound.some((port) => port.hostPort === DNS_PORT && isBoundAt(port, address))) return name;
    }
    return undefined;
  }
}

/** Whoever asks has no namespace, from which it could ask a server of its own, or Docker's resolver. */
function noNamespace({ from }: Server): Fault {
  return new Fault("LISTEN_NO_SERVER", `A server that is asked from "${from}" cannot be asked for other machines`, {
    remedy: "Have the route name a server by its address.",
  });
}
