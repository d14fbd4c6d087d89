/**
 * ListedNames: the names of a service or of a container of another machine, as the engine listed them last, for lists of names.
 */
import { addressBytes } from "../../../base/model/address.ts";
import { tasksText } from "../../../base/model/swarm-place.ts";
import type { OwnName } from "../../../base/model/visible-names.ts";
import type { SwarmService } from "../../facts/swarm-fact.ts";

/** TASKS and SERVICE are the name of all tasks of a service. */
export const TASKS = "tasks.";
/** The number of a task, or the node of a global service's, after the name of the service. */
export const SLOT = /(?:\d{1,9}|[a-z0-9]{25})/;
/** The random part of a task's or a node's name. */
const ID_LENGTH = 25;

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

export function machinesOf(tasks: SwarmService["tasks"]): number {
  return new Set(tasks.map(({ host }) => host)).size;
}

function addressesOf(texts: readonly string[]): { readonly v4: Uint8Array; readonly v6: Uint8Array } {
  const all = texts.flatMap((text) => addressBytes(text) ?? []);
  const of = (size: number): Uint8Array => Buffer.concat(all.filter(({ length }) => length === size));
  return { v4: of(4), v6: of(16) };
}
