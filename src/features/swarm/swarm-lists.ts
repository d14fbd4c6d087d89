/**
 * SwarmLists: the services and tasks of each swarm network, as the engine listed them last. A list may be seconds old and
 * lacks what has no healthy task, so no address in it is ever answered: it says which names are the swarm's, and feeds
 * what people read.
 */
import { isDeepStrictEqual } from "node:util";

import type { SwarmPlace } from "../../api/names.ts";
import { addressBytes } from "../../base/model/address.ts";
import type { OwnName } from "../../base/model/visible-names.ts";
import type { SwarmList, SwarmService } from "./engine-lists.ts";
import { SWARM_LIMITS } from "./limits.ts";

/** TASKS and SERVICE are the name of all tasks of a service. */
export const TASKS = "tasks.";
/** The number of a task, or the node of a global service's, after the name of the service. */
export const SLOT = /(?:\d{1,9}|[a-z0-9]{25})/;
/** The random part of a task's or a node's name. */
const ID_LENGTH = 25;

const EMPTY: SwarmList = { services: [], omitted: 0 };

interface KnownList {
  readonly list: SwarmList;
  /** When it last had other machines than this one; undefined: never. */
  readonly othersAt: number | undefined;
  readonly listedAt: number;
  /** The names and aliases of services, in lower case. */
  readonly services: ReadonlySet<string>;
  /** When others that were listed before were listed last. */
  readonly earlier: ReadonlyMap<string, number>;
  /** The newest task of each slot, as SERVICE.SLOT. */
  readonly slots: ReadonlyMap<string, string>;
  /** Names with a dot of containers that were attached by hand, and such aliases. */
  readonly dotted: ReadonlySet<string>;
  /** By their names and aliases, in lower case. */
  readonly byName: ReadonlyMap<string, ListedPlace>;
  readonly byAddress: ReadonlyMap<string, ListedPlace>;
}

/** A place on a network that is known. */
type ListedPlace = Omit<SwarmPlace, "network">;

export class SwarmLists {
  readonly #now: () => number;
  readonly #lists = new Map<string, KnownList>();
  /** Called when a name is wanted that the last list may lack. */
  onWanted: (networkId: string) => void = () => undefined;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Returns whether it differs from the last one. */
  put(networkId: string, list: SwarmList): boolean {
    const nowMs = this.#now();
    const known = this.#lists.get(networkId);
    const seen = { listedAt: nowMs, othersAt: hasOthers(list) ? nowMs : known?.othersAt };
    if (known !== undefined && isDeepStrictEqual(known.list, list)) {
      this.#lists.set(networkId, { ...known, ...seen });
      return false;
    }
    const named = list.services.filter(({ name }) => name !== "");
    const services = new Set(
      named.flatMap(({ name, aliases }) => [name, ...aliases].map((each) => each.toLowerCase())),
    );
    const earlier = [
      ...(known?.earlier ?? []),
      ...[...(known?.services ?? [])].map((name) => [name, known?.listedAt ?? 0] as const),
    ];
    const recent = earlier.filter(([name, atMs]) => !services.has(name) && nowMs - atMs < SWARM_LIMITS.serviceMs);
    this.#lists.set(networkId, {
      list,
      ...seen,
      services,
      earlier: new Map(recent.slice(-SWARM_LIMITS.services)),
      slots: slotsOf(list),
      dotted: new Set(dottedNames(list)),
      byName: placesByName(list),
      byAddress: placesByAddress(list),
    });
    return true;
  }

  remove(networkId: string): void {
    this.#lists.delete(networkId);
  }

  of(networkId: string): SwarmList {
    return this.#lists.get(networkId)?.list ?? EMPTY;
  }

  /** How long ago there were other machines, where there is none left: within the last hour. */
  aloneForMs(networkId: string): number | undefined {
    const known = this.#lists.get(networkId);
    if (known?.othersAt === undefined || hasOthers(known.list)) return undefined;
    const agoMs = this.#now() - known.othersAt;
    return agoMs < SWARM_LIMITS.serviceMs ? agoMs : undefined;
  }

  /** Whether the engine has listed the network yet. */
  has(networkId: string): boolean {
    return this.#lists.has(networkId);
  }

  /** Finds the service or task that has an address on a network. */
  placeOf(networkId: string, address: string): ListedPlace | undefined {
    return this.#lists.get(networkId)?.byAddress.get(address);
  }

  /** The service that has a name or alias, in lower case. */
  serviceCalled(networkId: string, name: string): ListedPlace | undefined {
    return this.#lists.get(networkId)?.byName.get(name);
  }

  /** Whether a service of this name, in lower case, is listed or was within the last hour. */
  isService(networkId: string, name: string): boolean {
    const known = this.#lists.get(networkId);
    const atMs = known?.services.has(name) === true ? known.listedAt : known?.earlier.get(name);
    return atMs !== undefined && this.#now() - atMs < SWARM_LIMITS.serviceMs;
  }

  /** The full name of the task in SERVICE.SLOT, which is in lower case. */
  taskIn(networkId: string, slot: string): string | undefined {
    return this.#lists.get(networkId)?.slots.get(slot);
  }

  hasDotted(networkId: string, name: string): boolean {
    return this.#lists.get(networkId)?.dotted.has(name) === true;
  }
}

function hasOthers({ services }: SwarmList): boolean {
  return machinesOf(services.flatMap(({ tasks }) => tasks)) > 1;
}

/** The engine lists tasks in no order. Of two in one slot, any is as good: Docker's resolver says which is up. */
function slotsOf({ services }: SwarmList): Map<string, string> {
  const slots = new Map<string, string>();
  for (const { name, tasks } of services) {
    if (name === "") continue;
    for (const task of tasks) {
      const end = task.name.lastIndexOf(".");
      if (end > 0) slots.set(task.name.slice(0, end).toLowerCase(), task.name.toLowerCase());
    }
  }
  return slots;
}

function dottedNames({ services }: SwarmList): string[] {
  return services
    .flatMap(({ name, aliases, tasks }) => (name === "" ? tasks.map((task) => task.name) : aliases))
    .filter((name) => name.includes("."))
    .map((name) => name.toLowerCase());
}

function placesByName({ services }: SwarmList): Map<string, ListedPlace> {
  const named = services.filter(({ name }) => name !== "").map((service) => ({ service, place: placeOf(service) }));
  const of = (names: (service: SwarmService) => readonly string[]): [string, ListedPlace][] =>
    named.flatMap(({ service, place }) =>
      names(service).map((each): [string, ListedPlace] => [each.toLowerCase(), place]),
    );
  return new Map([...of(({ aliases }) => aliases), ...of(({ name }) => [name])]);
}

function placesByAddress({ services }: SwarmList): Map<string, ListedPlace> {
  const all = new Map<string, ListedPlace>();
  for (const service of services) {
    const place = placeOf(service);
    if (place.virtualAddress !== null) all.set(place.virtualAddress, place);
    for (const { name, address, host } of service.tasks) all.set(address, { ...place, name, machine: host });
  }
  return all;
}

/** The place of the service itself. */
function placeOf({ name, virtualAddress, tasks }: SwarmService): ListedPlace {
  return {
    service: name === "" ? null : name,
    name,
    machine: null,
    virtualAddress: virtualAddress ?? null,
    tasks: tasks.length,
    machines: machinesOf(tasks),
  };
}

/** The names of a service, or of containers that were attached by hand, for lists of names. */
export function* listedNames(
  { name, virtualAddress, aliases, tasks }: SwarmService,
  network: string,
): Iterable<OwnName> {
  const common = { network, holders: [] };
  if (name !== "") {
    const source = "swarm service";
    const all = tasks.map(({ address }) => address);
    const text = tasksText({ tasks: tasks.length, machines: machinesOf(tasks) });
    const own = { ...common, source, ...addressesOf(virtualAddress === undefined ? all : [virtualAddress]) };
    const records = [virtualAddress === undefined ? text : `virtual, ${text}`];
    for (const each of [name, ...aliases]) yield { ...own, name: each.toLowerCase(), records };
    yield { ...common, source, name: TASKS + name.toLowerCase(), ...addressesOf(all), records: [text] };
  }
  for (const task of tasks) {
    const source = name === "" ? "swarm container" : "swarm task";
    const place = { ...common, source, ...addressesOf([task.address]), records: [`on ${task.host}`] };
    const full = task.name.toLowerCase();
    yield { ...place, name: full };
    const slot = full.slice(0, Math.max(0, full.length - ID_LENGTH - 1));
    if (name !== "" && slot !== "") yield { ...place, name: slot };
  }
}

function machinesOf(tasks: SwarmService["tasks"]): number {
  return new Set(tasks.map(({ host }) => host)).size;
}

function addressesOf(texts: readonly string[]): { readonly v4: Uint8Array; readonly v6: Uint8Array } {
  const all = texts.flatMap((text) => addressBytes(text) ?? []);
  const of = (size: number): Uint8Array => Buffer.concat(all.filter(({ length }) => length === size));
  return { v4: of(4), v6: of(16) };
}

/** Writes "2 tasks on 1 machine", for example. */
export function tasksText({ tasks, machines }: Pick<SwarmPlace, "tasks" | "machines">): string {
  if (tasks === 0) return "no healthy task";
  return `${tasks} ${tasks === 1 ? "task" : "tasks"} on ${machines} ${machines === 1 ? "machine" : "machines"}`;
}
