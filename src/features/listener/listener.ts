import type { ListenerReport } from "../../api/listener.ts";
import type { Status } from "../../api/status.ts";
import { Fault } from "../../base/lib/fault.ts";
import type { Server, View } from "../../base/model/view.ts";
import { featureValues } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";
import { DEFAULT_BRIDGE, type ContainerFact } from "../../container/facts/fact.ts";
import type { Decision } from "../../container/attach/decision.ts";
import type { PlacedNames } from "../../container/names/name-sources.ts";
import { dialIn } from "../../container/namespace/dial.ts";
import { proveNamespace } from "../../container/namespace/proof.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import type { Family } from "../../metrics/exposition.ts";
import { hostAddressFamilies } from "../../metrics/host-address-metrics.ts";
import type { EngineCore, Outsiders, RunCore, Running } from "../contract.ts";
import { BUILDS_DECISION, BUILDS_ID, BuildNames, BuildSteps } from "./builds.ts";
import { LISTENER } from "./feature.ts";
import { Guests } from "./guests.ts";
import { Listener } from "./host-listener.ts";
import type { Asker } from "./listener-table.ts";

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
      bridge: async () => await engine.askNetwork(DEFAULT_BRIDGE),
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

  besides(fact: ContainerFact, decision: Decision): string | undefined {
    const guests = this.#parts?.guests;
    if (decision.kind === "skip" && decision.code === "own-stack") return guests?.serve(fact);
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
