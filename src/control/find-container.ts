/**
 * FindContainer: finds a container by its name or the beginning of its ID, and the container whose namespace it uses.
 */
import type { ContainerFact } from "../container/registry/fact.ts";
import { Fault } from "../base/lib/fault.ts";
import { nearest } from "../base/lib/nearest.ts";

export function findContainer(facts: Iterable<ContainerFact>, nameOrId: string): ContainerFact {
  const all = [...facts];
  const exact = all.filter(({ name }) => name === nameOrId);
  const [fact, ...others] = exact.length > 0 ? exact : all.filter(({ id }) => id.startsWith(nameOrId));
  if (fact === undefined) {
    const suggestion = nearest(
      nameOrId,
      all.map(({ name }) => name),
    );
    const hint = suggestion === undefined ? "" : `; did you mean "${suggestion}"?`;
    throw new Fault("NO_SUCH_CONTAINER", `No running container named "${nameOrId}"${hint}`);
  }
  if (others.length > 0) {
    throw new Fault("NO_SUCH_CONTAINER", `Several container IDs begin with "${nameOrId}"`, {
      remedy: "Type more characters of the ID.",
    });
  }
  return fact;
}

const SHARED_PREFIX = "container:";

/** The container whose namespace this one uses: itself, or the one that it was started with (--network container:NAME). */
export function namespaceOwner(facts: ReadonlyMap<string, ContainerFact>, fact: ContainerFact): ContainerFact {
  if (!fact.networkMode.startsWith(SHARED_PREFIX)) return fact;
  const other = fact.networkMode.slice(SHARED_PREFIX.length);
  const owner = facts.get(other) ?? [...facts.values()].find(({ name, id }) => name === other || id.startsWith(other));
  if (owner === undefined) {
    throw new Fault(
      "NO_SUCH_CONTAINER",
      `"${fact.name}" uses the network namespace of container ${other.slice(0, 12)}, which is not running`,
      { remedy: "Start that container: both share its namespace." },
    );
  }
  return owner;
}
