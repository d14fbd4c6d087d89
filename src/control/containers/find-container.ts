/**
 * FindContainer: finds a container by its name, the beginning of its ID or its Compose service, and the container whose
 * namespace it uses. Requests are about one container: a service with several is refused with their names.
 */
import type { ContainerRef } from "../../api/names.ts";
import { composePlaceOf } from "../../container/facts/compose.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { type NamedContainer, containerCalled } from "../../base/model/container-choice.ts";
import { Fault } from "../../base/lib/fault.ts";

export function findContainer(facts: Iterable<ContainerFact>, word: string): ContainerFact {
  const all = [...facts];
  // A name or an ID takes precedence; nothing else is to be found out then.
  const exact = all.find(({ name, id }) => name === word || id === word);
  if (exact !== undefined) return exact;
  const named = all.map((fact) => ({ ...namedContainer(fact), fact }));
  return containerCalled(named, word).fact;
}

export function namedContainer(fact: ContainerFact): NamedContainer {
  const { project = null, service = null } = composePlaceOf(fact) ?? {};
  return { id: fact.id, name: fact.name, project, service };
}

const SHARED_PREFIX = "container:";

/** The container whose namespace this one uses: itself, or the one that it was started with (--network container:NAME). */
export function namespaceOwner(facts: ReadonlyMap<string, ContainerFact>, fact: ContainerFact): ContainerFact {
  if (!fact.networkMode.startsWith(SHARED_PREFIX)) return fact;
  const other = fact.networkMode.slice(SHARED_PREFIX.length);
  const owner = sharedOwner(facts, fact);
  if (owner === undefined) {
    throw new Fault(
      "NO_SUCH_CONTAINER",
      `"${fact.name}" uses the network namespace of container ${other.slice(0, 12)}, which is not running`,
      { remedy: "Start that container: both share its namespace." },
    );
  }
  return owner;
}

/** One may have been started with one that was started with another one, and so on. */
const SHARING_MAX = 16;

/** The other container whose namespace this one uses; undefined if there is none, or if that one does not run. */
export function sharedOwner(facts: ReadonlyMap<string, ContainerFact>, fact: ContainerFact): ContainerFact | undefined {
  let owner: ContainerFact | undefined;
  for (let hops = 0; hops < SHARING_MAX; hops++) {
    const next = startedWith(facts, owner ?? fact);
    if (next === undefined) return owner;
    owner = next;
  }
  return owner;
}

function startedWith(
  facts: ReadonlyMap<string, ContainerFact>,
  { networkMode }: ContainerFact,
): ContainerFact | undefined {
  if (!networkMode.startsWith(SHARED_PREFIX)) return undefined;
  const other = networkMode.slice(SHARED_PREFIX.length);
  return facts.get(other) ?? [...facts.values()].find(({ name, id }) => name === other || id.startsWith(other));
}

/** A container as reports name it. */
export function containerRef(fact: ContainerFact, owner: ContainerFact): ContainerRef {
  return { id: fact.id, name: fact.name, ...(owner !== fact && { sharedWith: owner.name }) };
}
