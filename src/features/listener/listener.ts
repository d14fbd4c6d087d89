import type { ListenerReport } from "../../api/listener.ts";
import type { Status } from "../../api/status.ts";
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import type { Server, View } from "../../base/model/view.ts";
import { featureValues } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";
import { DEFAULT_BRIDGE, type ContainerFact, isUserDefined, hasOwnStack } from "../../container/facts/fact.ts";
import type { Decision } from "../../container/attach/decision.ts";
import type { PlacedNames } from "../../container/names/name-sources.ts";
import { dialIn } from "../../container/namespace/dial.ts";
import { proveNamespace } from "../../container/namespace/proof.ts";
import { closeQuietly, openInRoot } from "../../kernel/libc.ts";
import type { Family } from "../../metrics/exposition.ts";
import { hostAddressFamilies } from "../../metrics/metrics.ts";
import type { EngineCore, Outsiders, RunCore, Running } from "../contract.ts";
import { BUILDS_DECISION, BUILDS_ID, BuildNames, BuildSteps } from "./builds.ts";
import { LISTENER } from "./feature.ts";
import { Listener } from "./host-listener.ts";
import type { Asker } from "./listener-table.ts";
import { isIPv6 } from "node:net";
import type { ReportEvent } from "../../base/log/log.ts";
import { LISTENER_ADDRESSES } from "../../base/model/listener-addresses.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { type Journal, type ChangeRecord, newRecord } from "../../container/files/journal.ts";
import { WrittenResolvConf } from "../../container/files/written-resolv-conf.ts";
import type { SearchList } from "../../container/files/resolv-conf-text.ts";
import { type EngineHost, isContainerPath } from "../../container/namespace/engine-host.ts";

export function open(run: RunCore): Running {
  return new ListenerInRun(run);
}

/** What there is in a run for the containers of an engine. */
interface Parts {
  readonly engine: EngineCore;
  readonly listener: Listener;
  readonly builds: BuildSteps;
  readonly guests: Guests;
}

/** The listener on the host, with the steps of builds and the guests that ask it. */
class ListenerInRun implements Running {
  readonly #run: RunCore;
  /** Undefined inside of a KIND node. */
  #parts: Parts | undefined;
  readonly outsiders: Outsiders;

  constructor(run: RunCore) {
    this.#run = run;
    const current = (): BuildSteps | undefined => (this.#parts?.builds.isOn === true ? this.#parts.builds : undefined);
    this.outsiders = {
      get facts() {
        const builds = current();
        return builds === undefined ? [] : [builds.fact];
      },
      decisionOf: (id) => (id === BUILDS_ID && current() !== undefined ? BUILDS_DECISION : undefined),
    };
  }

  engine(engine: EngineCore): void {
    const { onEvent } = this.#run;
    const { links, host, journal } = engine;
    const onState = (): void => {
      engine.roster().refresh();
      listener.update(BUILDS_ID);
    };
    const listener = new Listener({
      ...engine,
      openEndpoint: engine.openSharedEndpoint,
      containers: {
        viewOf: (id) => this.#viewFor(id),
        isLasting: (id) => id === BUILDS_ID && builds.isOn,
        dial: (id, server, type) => dial(engine, id, server, type),
      },
      followLinks: async () => {
        await links.start(engine.directory().containers.values());
        await links.settled();
      },
      askers: () => askersOn({ engine, builds }),
      links: () => linksOn({ engine, builds }),
      onEvent,
      onState,
    });
    const builds = new BuildSteps({
      ...engine,
      bridge: async () => await engine.api.network(DEFAULT_BRIDGE),
      networkNamed: (name) => engine.directory().networkNamed(name),
      onBridge: engine.putNetwork,
      onChange: () => {
        listener.refresh();
        listener.update(BUILDS_ID);
      },
    });
    links.onChange(() => listener.refresh());
    links.onChange(() => builds.refresh());
    links.onStranger(() => builds.refresh());
    const guests = new Guests({
      ...{ journal, host, onEvent },
      listener: () => listener.place,
      searchListOf: engine.searchListOf,
      onRewritten: engine.reinspect,
    });
    this.#parts = { engine, listener, builds, guests };
    this.configure(this.#run.settings);
  }

  makeNames(settings: Settings): PlacedNames {
    return { place: "first", source: new BuildNames(featureValues(LISTENER.settings, settings).builds) };
  }

  configure(settings: Settings): void {
    const { listener: isOn, builds } = featureValues(LISTENER.settings, settings);
    this.#parts?.listener.configure(isOn);
    this.#parts?.builds.configure(builds);
  }

  /** A guest is skipped, for a reason that says how it is answered all the same. */
  decide(fact: ContainerFact, decision: Decision): Decision | undefined {
    const guests = this.#parts?.guests;
    if (guests !== undefined && decision.kind === "skip" && decision.code === "own-stack")
      return { ...decision, reason: `${decision.reason}; ${guests.serve(fact)}` };
    guests?.release(fact.id);
    return undefined;
  }

  decided(containerId: string): void {
    this.#parts?.listener.update(containerId);
  }

  viewsChanged(): void {
    this.#parts?.listener.update(BUILDS_ID);
  }

  remove(containerId: string): void {
    this.#parts?.guests.forget(containerId);
  }

  changesFiles(fact: ContainerFact): boolean {
    return this.#parts?.guests.isChanged(fact) === true;
  }

  status(): Pick<Status, "listener"> {
    return { listener: this.#report ?? null };
  }

  metrics(): readonly Family[] {
    const report = this.#report;
    return report === undefined
      ? []
      : hostAddressFamilies([{ ...report, name: "listener", isServing: report.state === "serving" }]);
  }

  get isSettled(): boolean {
    return this.#parts?.listener.isSettled !== false;
  }

  async pause(): Promise<void> {
    await this.#parts?.listener.pause();
  }

  resume(): void {
    this.#parts?.listener.resume();
  }

  async stop(isHandedOver: boolean): Promise<void> {
    if (this.#parts === undefined) return;
    const { listener, guests, builds } = this.#parts;
    if (isHandedOver) {
      await listener.abandon();
      guests.close(false);
    } else {
      guests.close(true);
      await listener.stop();
    }
    builds.close();
  }

  /** Undefined where it is off. */
  get #report(): ListenerReport | undefined {
    if (this.#parts === undefined) return undefined;
    const { listener, builds } = this.#parts;
    if (listener.place.state === "off") return undefined;
    const ofBuilds = builds.report;
    return { ...listener.report, ...(ofBuilds !== undefined && { builds: ofBuilds }) };
  }

  /**
   * Whoever asks gets answers, also a container that dns11 does not serve in its namespace: it has no other resolver here. But for one
   * whose queries crash the process, and one about which nothing is decided yet.
   */
  #viewFor(id: string): View | undefined {
    if (this.#parts === undefined) return undefined;
    const { engine, builds } = this.#parts;
    if (id === BUILDS_ID) {
      const isAnswered = builds.isOn && engine.quarantineOf(BUILDS_ID) === undefined;
      return isAnswered ? engine.directory().viewOf(builds.fact) : undefined;
    }
    const fact = engine.directory().containers.get(id);
    const decision = engine.roster().decisionOf(id);
    if (fact === undefined || decision === undefined) return undefined;
    return decision.kind === "skip" && decision.code === "quarantined" ? undefined : engine.roster().viewOf(fact);
  }
}

/** A packet from a link-local address is for the network that it is on, and the listener is on none. */
function* askersOn({ engine: { links }, builds }: Pick<Parts, "engine" | "builds">): Generator<Asker> {
  yield* builds.askers();
  for (const { containerId, index: link, addresses } of links.all()) {
    for (const address of addresses) if (!address.startsWith("fe80:")) yield { containerId, link, address };
  }
}

function* linksOn({ engine: { links }, builds }: Pick<Parts, "engine" | "builds">): Generator<number> {
  yield* builds.indexes();
  for (const { index } of links.all()) yield index;
}

function dial(engine: EngineCore, containerId: string, server: Server, type: "udp" | "tcp"): number {
  // A step has no server of its own.
  if (server.from === "host" || containerId === BUILDS_ID) return engine.dialFromHost(server, type);
  const { runner, host, directory } = engine;
  const fact = directory().containers.get(containerId);
  if (fact === undefined) throw new Fault("ENDED", "The container is gone");
  const { fd } = proveNamespace({ containerId, ...fact }, host(), runner.homeId);
  try {
    return dialIn(runner, fd, server, type, true);
  } finally {
    closeQuietly(fd);
  }
}

interface GuestsParts {
  readonly journal: Journal;
  readonly host: () => EngineHost;
  readonly listener: () => Pick<ListenerReport, "state" | "addresses">;
  /** The search list of its project, for a guest that asks for it. */
  readonly searchListOf: (fact: ContainerFact) => SearchList | undefined;
  /** Another program has written a guest's resolv.conf: decide about it again. */
  readonly onRewritten: (containerId: string) => void;
  readonly onEvent: ReportEvent;
}

interface Guest {
  readonly startedAt: string;
  readonly resolvConf: WrittenResolvConf;
  record: ChangeRecord;
}

/**
 * Containers with a network stack of their own (gVisor, Kata). Nothing in their namespace sees their queries, Docker's resolver at
 * 127.0.0.11 neither, so they ask the listener on the host: its address takes the place of 127.0.0.11 in the resolv.conf that Docker
 * made for them, which a running guest reads. The change is in the journal before it is made, and is undone to the byte.
 */
class Guests {
  readonly #parts: GuestsParts;
  readonly #guests = new Map<string, Guest>();

  constructor(parts: GuestsParts) {
    this.#parts = parts;
  }

  /** Whether the file of this container is changed. */
  isChanged(fact: ContainerFact): boolean {
    return hasOwnStack(fact) && this.#parts.listener().state !== "off";
  }

  /** Has the container ask the listener, where that answers. Returns how it is served, for people. */
  serve(fact: ContainerFact): string {
    const { state, addresses } = this.#parts.listener();
    if (state === "off") {
      this.release(fact.id);
      return `with listener: true, dns11 answers it at ${LISTENER_ADDRESSES.ipv4}`;
    }
    if (!fact.endpoints.some(({ networkName }) => isUserDefined(networkName)))
      return `dns11 answers it at ${LISTENER_ADDRESSES.ipv4}, if it asks there: its resolv.conf has servers of its own`;
    if (state === "opening") return `dns11 answers it at ${LISTENER_ADDRESSES.ipv4} once the listener on the host does`;
    if (state !== "serving") return "the listener on the host, which would answer it, does not answer now";
    const address = addressFor(fact, addresses);
    if (address === undefined) return "the listener on the host has no address that it can reach";
    return this.#advertise(fact, address);
  }

  /** Undoes what was done for a container that is no guest, or is not to be served. */
  release(containerId: string): void {
    const guest = this.#guests.get(containerId);
    if (guest === undefined) return;
    this.#guests.delete(containerId);
    const { resolvConf, record } = guest;
    const about = { container: record.name };
    try {
      if (record.resolvConf !== undefined) resolvConf.restore(record.resolvConf, undefined, [DOCKER_RESOLVER]);
      this.#parts.journal.remove(containerId);
    } catch (error) {
      this.#parts.onEvent({ ...about, reason: reasonOf(error) }, "cannot restore the resolv.conf of a guest", "warn");
    }
  }

  /** The container is gone, and its resolv.conf with it. */
  forget(containerId: string): void {
    const guest = this.#guests.get(containerId);
    if (guest === undefined) return;
    this.#guests.delete(containerId);
    guest.resolvConf.close();
    this.#parts.journal.remove(containerId);
  }

  /** Undoes all, or leaves it to the process that serves now. */
  close(isUndone: boolean): void {
    for (const [id, { resolvConf }] of [...this.#guests]) {
      if (isUndone) this.release(id);
      else resolvConf.close();
    }
    this.#guests.clear();
  }

  #advertise(fact: ContainerFact, address: string): string {
    const guest = this.#ensure(fact);
    try {
      guest.resolvConf.advertise({
        addresses: [address],
        search: undefined,
        list: this.#parts.searchListOf(fact),
        record: guest.record.resolvConf,
        save: (resolvConf) => {
          guest.record = { ...guest.record, resolvConf };
          this.#parts.journal.write(guest.record);
        },
        onRewritten: () => this.#parts.onRewritten(fact.id),
      });
      return `dns11 answers it at ${address}; resolv.conf: ${guest.resolvConf.state}`;
    } catch (error) {
      return `dns11 answers it at ${address}, if it asks there: its resolv.conf cannot be written: ${reasonOf(error)}`;
    }
  }

  #ensure(fact: ContainerFact): Guest {
    const known = this.#guests.get(fact.id);
    if (known?.startedAt === fact.startedAt) return known;
    known?.resolvConf.close();
    const { record: saved } = this.#parts.journal.read(fact.id);
    const record = saved?.startedAt === fact.startedAt ? saved : newRecord(fact, "listener");
    const guest = { startedAt: fact.startedAt, record, resolvConf: this.#resolvConfOf(fact) };
    this.#guests.set(fact.id, guest);
    return guest;
  }

  /** The guest's own files cannot be read from the host. If a user has mounted another file, Docker reports that one's path. */
  #resolvConfOf({ id, resolvConfPath: path = "" }: ContainerFact): WrittenResolvConf {
    const { host } = this.#parts;
    const openFile = (flags: number): number => openInRoot(host().root, path, flags);
    return new WrittenResolvConf({
      path,
      openWritten: openFile,
      openRead: openFile,
      openOriginal: openFile,
      isContainerFile: () => isContainerPath(path, id),
    });
  }
}

function addressFor({ endpoints }: ContainerFact, addresses: readonly string[]): string | undefined {
  const families = { v4: endpoints.some(({ ipv4 }) => ipv4 !== undefined) };
  return addresses.find((address) => isIPv6(address) !== families.v4);
}
