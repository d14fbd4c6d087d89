/**
 * FindContainer: which container somebody means, by its name or the beginning of its id; and whose namespace that one is
 * in.
 */
import type { ContainerFact } from "../container/registry/fact.ts";
import { Fault } from "../base/lib/fault.ts";
import { nearest } from "../base/lib/nearest.ts";

export function findContainer(facts: Iterable<ContainerFact>, wanted: string): ContainerFact {
  const all = [...facts];
  const exact = all.filter(({ name }) => name === wanted);
  const [fact, ...others] = exact.length > 0 ? exact : all.filter(({ id }) => id.startsWith(wanted));
  if (fact === undefined) {
    const meant = nearest(
      wanted,
      all.map(({ name }) => name),
    );
    const hint = meant === undefined ? "" : `; did you mean "${meant}"?`;
    throw new Fault("NO_SUCH_CONTAINER", `No running container is "${wanted}"${hint}`);
  }
  if (others.length > 0) throw new Fault("NO_SUCH_CONTAINER", `The ids of several containers begin with "${wanted}"`);
  return fact;
}

const SHARED_PREFIX = "container:";

/** The container whose namespace this one is in: itself, or the one that it was started into. */
export function namespaceOwner(facts: ReadonlyMap<string, ContainerFact>, fact: ContainerFact): ContainerFact {
  if (!fact.networkMode.startsWith(SHARED_PREFIX)) return fact;
  const other = fact.networkMode.slice(SHARED_PREFIX.length);
  const owner = facts.get(other) ?? [...facts.values()].find(({ name, id }) => name === other || id.startsWith(other));
  if (owner === undefined) {
    throw new Fault(
      "NO_SUCH_CONTAINER",
      `"${fact.name}" is in the namespace of container ${other.slice(0, 12)}, which does not run`,
    );
  }
  return owner;
}
