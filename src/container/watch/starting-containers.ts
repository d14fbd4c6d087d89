/**
 * StartingContainers: what is known of a container before its first instruction. From the moment that the engine begins to start
 * one until it has, no inspect of it returns, and by then a program that lives for milliseconds has had its answers. So a
 * container is inspected when it has been created, or has ended, and is served with that once its namespace is born. Its addresses
 * and its list of servers are not known then: for its own names, and all that is to be forwarded, Docker's resolver is asked.
 */
import { LIMITS } from "../../base/limits.ts";
import { type ContainerFact, type NetworkFact, isUserDefined } from "../facts/fact.ts";
import type { Sandbox } from "../namespace/find-sandbox.ts";
import type { SandboxBirths } from "../namespace/sandbox-births.ts";
import { apiFiles } from "./container-files.ts";
import type { Engine } from "./engine.ts";
import type { ContainerJson, EndpointJson } from "./engine-json.ts";
import type { ImageConfigs } from "./image-configs.ts";
import type { SplitConfig } from "./split-config.ts";
import { containerFact, isUp, networkFact } from "./translate.ts";

export interface StartingHooks {
  /** Whether anybody is to be served before its start. */
  readonly isWanted: () => boolean;
  readonly births: Pick<SandboxBirths, "arm" | "follow">;
  readonly networkNamed: (name: string) => NetworkFact | undefined;
  /** It has not started yet; the facts of the inspect after its start follow. */
  readonly onStarting: (fact: ContainerFact) => void;
}

/** A container that does not run. */
interface Prepared {
  readonly json: ContainerJson;
  readonly split: SplitConfig;
  /** Which keys of labels were read. */
  readonly generation: number;
  readonly networks: readonly NetworkFact[];
}

interface StartingParts {
  readonly engine: Pick<Engine, "container" | "network" | "labels">;
  readonly images: Pick<ImageConfigs, "split">;
  readonly hooks: StartingHooks;
  /** Why a container must not be inspected for now. */
  readonly barredBy: (id: string) => string | undefined;
  readonly hasNetwork: (id: string) => boolean;
  readonly onNetwork: (fact: NetworkFact) => void;
}

export class StartingContainers {
  readonly #parts: StartingParts;
  /** In the order in which they were inspected. */
  readonly #prepared = new Map<string, Prepared>();
  #inspecting = 0;

  constructor(parts: StartingParts) {
    this.#parts = parts;
    parts.hooks.births.follow({
      ownerOf: (groups) => this.#ownerOf(groups),
      onBorn: (id, sandbox) => this.#born(id, sandbox),
    });
  }

  /** It is usually started at once: an inspect that comes too late returns when it runs, and says nothing new. */
  async created(id: string): Promise<void> {
    const { engine, hooks, barredBy } = this.#parts;
    if (!hooks.isWanted() || barredBy(id) !== undefined || this.#inspecting >= LIMITS.inspectsAtOnce) return;
    this.#inspecting++;
    try {
      const json = await engine.container(id);
      if (json !== undefined && !isUp(json)) await this.#prepare(json);
    } catch {
      // It is inspected again when it starts.
    } finally {
      this.#inspecting--;
    }
  }

  /** The container does not run, and may be started as it is. */
  stopped(json: ContainerJson): void {
    this.#prepared.delete(json.Id);
    if (!this.#parts.hooks.isWanted()) return;
    void this.#prepare(json).catch(() => {
      // The engine is away, and starts nothing.
    });
  }

  /** The container runs, and is known; or it is gone. */
  forget(id: string): void {
    this.#prepared.delete(id);
  }

  async #prepare(json: ContainerJson): Promise<void> {
    const { engine, images, hooks } = this.#parts;
    const names = Object.keys(json.NetworkSettings?.Networks ?? {});
    if (names.length === 0 || !names.every(isUserDefined)) return;
    hooks.births.arm();
    const { generation } = engine.labels;
    const [split, ...found] = await Promise.all([
      images.split(json),
      ...names.map(async (name) => await this.#network(name)),
    ]);
    // What other machines know of a network of a swarm comes by itself.
    const networks = found.flatMap((network) => (network?.swarm === undefined ? (network ?? []) : []));
    if (networks.length < names.length) return;
    const [oldest] = this.#prepared.keys();
    if (this.#prepared.size >= LIMITS.startingContainers && oldest !== undefined) this.#prepared.delete(oldest);
    this.#prepared.delete(json.Id);
    this.#prepared.set(json.Id, { json, split, generation, networks });
  }

  /** Who created the container may have written an id. */
  async #network(name: string): Promise<NetworkFact | undefined> {
    const { engine, hooks, hasNetwork, onNetwork } = this.#parts;
    const known = hooks.networkNamed(name);
    if (known !== undefined) return known;
    const json = await engine.network(encodeURIComponent(name));
    if (json === undefined) return undefined;
    const fact = networkFact(json);
    if (!hasNetwork(fact.id)) onNetwork(fact);
    return fact;
  }

  /** A group may be named like another container's by whoever may make groups. */
  #ownerOf(groups: string): string | undefined {
    const [owner, ...others] = [...this.#prepared.keys()].filter((id) => groups.includes(id));
    return others.length === 0 ? owner : undefined;
  }

  #born(id: string, sandbox: Sandbox): void {
    const { engine, hooks, hasNetwork } = this.#parts;
    const { json, split, generation, networks = [] } = this.#prepared.get(id) ?? {};
    if (json === undefined || generation !== engine.labels.generation || !hooks.isWanted()) return;
    if (!networks.every((network) => hasNetwork(network.id))) return;
    const starting: ContainerJson = {
      ...json,
      State: {
        Running: true,
        Pid: sandbox.pid,
        StartedAt: "",
        ...(hasCheck(json) && { Health: { Status: "starting" } }),
      },
      NetworkSettings: {
        SandboxKey: sandbox.path,
        Networks: Object.fromEntries(networks.map((network) => [network.name, endpointOn(network)])),
      },
    };
    hooks.onStarting({ ...containerFact(starting, apiFiles(json), split), isStarting: true });
  }
}

/** Of a check that is turned off the list is ["NONE"]. */
function hasCheck({ Config: config }: ContainerJson): boolean {
  const last = config?.Healthcheck?.Test?.at(-1);
  return last !== undefined && last !== "NONE";
}

/** The container has neither an address nor a name on that network yet. */
function endpointOn({ id, isInternal, gateways = [] }: NetworkFact): EndpointJson {
  const [ipv4 = "", ipv6 = ""] = isInternal
    ? []
    : [gateways.find((each) => !each.includes(":")), gateways.find((each) => each.includes(":"))];
  return { NetworkID: id, EndpointID: "not connected yet", DNSNames: [], Gateway: ipv4, IPv6Gateway: ipv6 };
}
