/**
 * Finds the container that a person means.
 */
import type { ContainerFact } from "../container/registry/fact.ts";
import { Fault } from "../lib/fault.ts";

/** By its name, or by the beginning of its id. */
export function findContainer(facts: Iterable<ContainerFact>, wanted: string): ContainerFact {
  const all = [...facts];
  const exact = all.filter(({ name }) => name === wanted);
  const [fact, ...others] = exact.length > 0 ? exact : all.filter(({ id }) => id.startsWith(wanted));
  if (fact === undefined) throw new Fault("NO_SUCH_CONTAINER", `No running container is "${wanted}"`);
  if (others.length > 0) throw new Fault("NO_SUCH_CONTAINER", `The ids of several containers begin with "${wanted}"`);
  return fact;
}
