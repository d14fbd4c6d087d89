/**
 * StoppedContainers: the containers of the engine that are not running, with their aliases. The engine is asked at most once
 * a second, however many readers there are, and a container is inspected once for each time that it stops. While the engine
 * hangs, the list is the last one.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { CoalescedCall } from "../../base/lib/coalesced-call.ts";
import type { Engine } from "../../container/watch/engine.ts";
import type { ContainerJson, EndpointJson, ListedJson } from "../../container/watch/engine-json.ts";
import type { StoppedContainer } from "../../control/causes/known-container.ts";

type EngineCalls = Pick<Engine, "notRunningContainers" | "container">;

const LIST_EVERY_MS = 1_000;
/** An explanation that waits for an engine that hangs explains nothing. */
const WAIT_MS = 5_000;
/** Of more containers, the older ones are known by name and service, but not by alias. */
const INSPECTED_MAX = 64;
/** The time of a container that has never ended. */
const NEVER = "0001-01-01T00:00:00Z";

export class StoppedContainers {
  readonly #engine: EngineCalls;
  readonly #isRunning: (id: string) => boolean;
  readonly #waitMs: number;
  /** By ID; dropped when the container runs again. */
  #inspected = new Map<string, StoppedContainer>();
  readonly #call: CoalescedCall<readonly StoppedContainer[]>;
  #last: readonly StoppedContainer[] = [];
  #lastMs = -Infinity;

  /** `isRunning` tells whether a container is known to run. */
  constructor(engine: EngineCalls, isRunning: (id: string) => boolean, waitMs = WAIT_MS) {
    this.#engine = engine;
    this.#isRunning = isRunning;
    this.#waitMs = waitMs;
    this.#call = new CoalescedCall(async () => await this.#read(), LIST_EVERY_MS);
  }

  async list(): Promise<readonly StoppedContainer[]> {
    if (performance.now() - this.#lastMs < LIST_EVERY_MS) return this.#last;
    const list = await Promise.race([this.#call.get(), sleep(this.#waitMs, undefined, { ref: false })]);
    if (list === undefined) return this.#last;
    this.#last = list;
    this.#lastMs = performance.now();
    return list;
  }

  /** A container has ended: what was read is out of date. */
  forget(id: string): void {
    this.#lastMs = -Infinity;
    this.#inspected.delete(id);
  }

  async #read(): Promise<readonly StoppedContainer[]> {
    try {
      const all = await this.#engine.notRunningContainers();
      // A running container that is not known yet will be known in a moment.
      const stopped = all.filter(
        ({ Id: id, State: state }) => !this.#isRunning(id) && state !== "running" && state !== "paused",
      );
      const inspected = new Map<string, StoppedContainer>();
      // The newest come first.
      for (const [index, json] of stopped.entries()) {
        const known = this.#inspected.get(json.Id);
        if (known !== undefined && known.state === json.State) inspected.set(json.Id, known);
        else if (index < INSPECTED_MAX) inspected.set(json.Id, await this.#inspect(json));
      }
      this.#inspected = inspected;
      return stopped.map((json) => inspected.get(json.Id) ?? fromList(json));
    } catch {
      // Unknown while the engine is away.
      return [];
    }
  }

  async #inspect(listed: ListedJson): Promise<StoppedContainer> {
    const json = await this.#engine.container(listed.Id);
    return json === undefined ? fromList(listed) : fromInspect(listed, json);
  }
}

function fromList({
  Id: id,
  Names: names,
  State: state,
  Labels: labels,
  NetworkSettings: settings,
}: ListedJson): StoppedContainer {
  return {
    id,
    name: names?.[0]?.replace(/^\//, "") ?? "",
    state: state ?? "",
    exitCode: undefined,
    atMs: undefined,
    labels: labels ?? {},
    networks: Object.keys(settings?.Networks ?? {}).map((name) => ({ name, aliases: [] })),
  };
}

function fromInspect(
  listed: ListedJson,
  { Name: name, State: state, Config: config, NetworkSettings: settings }: ContainerJson,
): StoppedContainer {
  const finished = state?.FinishedAt ?? NEVER;
  return {
    ...fromList(listed),
    name: name.replace(/^\//, ""),
    exitCode: finished === NEVER ? undefined : state?.ExitCode,
    atMs: finished === NEVER ? undefined : Date.parse(finished) || undefined,
    labels: config?.Labels ?? {},
    networks: Object.entries(settings?.Networks ?? {}).map(([network, endpoint]) => ({
      name: network,
      aliases: aliasesOf(endpoint),
    })),
  };
}

function aliasesOf({ Aliases: aliases, DNSNames: names }: EndpointJson): string[] {
  return [...(aliases ?? []), ...(names ?? [])];
}
