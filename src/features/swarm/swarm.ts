import type { Cause } from "../../api/causes.ts";
import type { ContainerStatus } from "../../api/status.ts";
import type { SwarmPlace } from "../../api/names.ts";
import { bareName } from "../../base/dns/name.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { commandOf } from "../../base/lib/text.ts";
import { RateLimitedLog } from "../../base/log/rate-limited-log.ts";
import type { Settings } from "../../config/settings.ts";
import type { NameContext, PlacedNames } from "../../container/names/name-sources.ts";
import { cause } from "../../control/causes/situation.ts";
import type { FailedName } from "../../control/situation/ports.ts";
import type { EngineCore, RunCore, Running } from "../contract.ts";
import { type ServiceJson, type SwarmList, readNetwork, readServices, swarmList } from "./engine-lists.ts";
import { SWARM_LIMITS } from "./limits.ts";
import { SwarmLists, TASKS } from "./swarm-lists.ts";
import { SwarmNetworks } from "./swarm-networks.ts";

export function open(run: RunCore): Running {
  return new Swarm(run);
}

class Swarm implements Running {
  readonly #run: RunCore;
  readonly #lists = new SwarmLists();
  #engine: EngineCore | undefined;
  /** That of the current directory. */
  #source: SwarmNetworks | undefined;
  #watch: SwarmWatch | undefined;
  #log: RateLimitedLog | undefined;

  constructor(run: RunCore) {
    this.#run = run;
  }

  makeNames({ isStrict }: Settings, { networks }: NameContext): PlacedNames {
    const source = new SwarmNetworks({
      networks,
      lists: this.#lists,
      // The first views are made when it is known.
      engineVersion: () => this.#engine?.engineVersion() ?? Infinity,
      asksDocker: !isStrict,
      onCurrent: (current) => (this.#source = current),
    });
    this.#source ??= source;
    return { place: "swarm", source };
  }

  engine(engine: EngineCore): void {
    this.#engine = engine;
  }

  start(): void {
    if (this.#engine === undefined) return;
    const log = new RateLimitedLog(this.#run.log);
    this.#log = log;
    this.#watch = new SwarmWatch({
      api: this.#engine.api,
      networks: () => (this.#source?.inUse ?? []).map(({ id }) => id),
      put: (id, list) => this.#lists.put(id, list) && this.#run.onNames(),
      remove: (id) => {
        this.#lists.remove(id);
        this.#run.onNames();
      },
      onFailed: (reason) => log.log("warn", "swarm", { reason }, "cannot list the services of a swarm network"),
    });
    this.#lists.onWanted = (id) => this.#watch?.want(id);
    this.#watch.start();
  }

  closing(): void {
    this.#watch?.stop();
  }

  close(): void {
    this.#log?.close();
  }

  /** The services that it is a task of. */
  container(containerId: string): Pick<ContainerStatus, "swarm"> {
    const fact = this.#engine?.directory().containers.get(containerId);
    const places = (fact?.endpoints ?? []).flatMap(({ ipv4, ipv6 }) =>
      [ipv4, ipv6].flatMap((address) =>
        fact === undefined || address === undefined ? [] : (this.#source?.placeOf(fact, address) ?? []),
      ),
    );
    const swarm = places.filter(({ service }) => service !== null);
    return swarm.length > 0 ? { swarm } : {};
  }

  causeOf(failed: FailedName): Cause | undefined {
    return this.#source && swarmCause(failed, this.#source);
  }
}

/** Why a name fails, by what the engine lists. */
export function swarmCause(
  { name, failure, client, isKept }: FailedName,
  source: Pick<SwarmNetworks, "serviceCalled" | "aloneOn">,
): Cause | undefined {
  const service = source.serviceCalled(client, name);
  if (service?.tasks === 0) return taskCause(service);
  if (failure === "NXDOMAIN" && service !== undefined && isSlotOf(name, service)) return slotCause(name, service);
  const alone = isKept ? undefined : source.aloneOn(client);
  return alone !== undefined && mayBeSwarms(name, alone.network) ? aloneCause(name, alone) : undefined;
}

function taskCause({ service, network }: SwarmPlace): Cause {
  const sentence = `the swarm service "${service ?? ""}" has no running, healthy task on ${network}, so it has no name`;
  return cause("no-healthy-task", sentence, {
    fix: commandOf("docker", "service", "ps", service ?? ""),
    isBreaking: true,
  });
}

function isSlotOf(name: string, { name: service }: SwarmPlace): boolean {
  const [own, after] = [name.toLowerCase(), `${service.toLowerCase()}.`];
  return own.startsWith(after) && /^(?:\d+|[a-z0-9]{25})(?:\.|$)/.test(own.slice(after.length));
}

function slotCause(name: string, { service, network }: SwarmPlace): Cause {
  const sentence = `the swarm service "${service ?? ""}" has no running, healthy task on ${network} that "${name}" names`;
  return cause("no-healthy-task", sentence, { fix: commandOf("docker", "service", "ps", service ?? "") });
}

/** A single label, `tasks.NAME`, or either on the network. */
function mayBeSwarms(name: string, network: string): boolean {
  const bare = bareName(name);
  const suffix = `.${network.toLowerCase()}`;
  const inside = bare.endsWith(suffix) ? bare.slice(0, -suffix.length) : bare;
  return !(inside.startsWith(TASKS) ? inside.slice(TASKS.length) : inside).includes(".");
}

function aloneCause(name: string, { network, forMs }: { readonly network: string; readonly forMs: number }): Cause {
  const sentence = `"${name}" may run on another machine, but gossip has brought none on ${network} for ${Math.round(forMs / 1000)} seconds`;
  return cause("swarm-alone", sentence, { fix: "dns11 doctor" });
}

interface SwarmWatchParts {
  readonly api: EngineCore["api"];
  /** The ids of swarm networks with a container of this engine. */
  readonly networks: () => readonly string[];
  readonly put: (networkId: string, list: SwarmList) => void;
  readonly remove: (networkId: string) => void;
  readonly onFailed: (reason: string) => void;
}

/**
 * Reads the engine's lists of the swarm networks that containers are on, because there are no events of tasks. One list is read at a time,
 * and each network waits for its turn.
 */
class SwarmWatch {
  readonly #parts: SwarmWatchParts;
  /** When each network was read last. */
  readonly #readMs = new Map<string, number>();
  readonly #wanted = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #isReading = false;

  constructor(parts: SwarmWatchParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer = setInterval(() => guard.run("engine", 0, () => void this.#turn()), SWARM_LIMITS.pollAgainMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** The list of a network lacks a name that is queried. */
  want(networkId: string): void {
    this.#wanted.add(networkId);
  }

  async #turn(): Promise<void> {
    const networks = this.#parts.networks();
    for (const id of this.#readMs.keys()) if (!networks.includes(id)) this.#forget(id);
    if (this.#isReading || networks.length === 0) return;
    const nowMs = performance.now();
    await this.#read(networks.filter((id) => this.#wanted.has(id) || nowMs - this.#last(id) >= SWARM_LIMITS.pollMs));
  }

  /** Those that have waited longest, as many as one round reads. */
  async #read(networks: readonly string[]): Promise<void> {
    const { api, put, onFailed } = this.#parts;
    const due = networks.toSorted((a, b) => this.#last(a) - this.#last(b)).slice(0, SWARM_LIMITS.networks);
    if (due.length === 0) return;
    this.#isReading = true;
    try {
      const services = await this.#services();
      for (const id of due) {
        this.#wanted.delete(id);
        this.#readMs.set(id, performance.now());
        const json = await readNetwork(api, id);
        if (json !== undefined) put(id, swarmList(id, json, services));
      }
    } catch (error) {
      onFailed(reasonOf(error));
    } finally {
      this.#isReading = false;
    }
  }

  /** The last container has left it. */
  #forget(id: string): void {
    this.#readMs.delete(id);
    this.#wanted.delete(id);
    this.#parts.remove(id);
  }

  #last(id: string): number {
    return this.#readMs.get(id) ?? -Infinity;
  }

  /** Only managers have them; a list that is too long does not keep the networks' from being read. */
  async #services(): Promise<readonly ServiceJson[] | undefined> {
    try {
      return await readServices(this.#parts.api);
    } catch (error) {
      this.#parts.onFailed(reasonOf(error));
      return undefined;
    }
  }
}
