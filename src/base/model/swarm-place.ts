/**
 * SwarmPlace: whose an address on a swarm network is, by the engine's list. The list may be seconds old, so this is what people
 * read; no query is answered from it.
 */
export interface SwarmPlace {
  readonly network: string;
  /** Null for a container that was attached by hand. */
  readonly service: string | null;
  /** SERVICE.SLOT.ID of a task; the name of a container; of a virtual address its service. */
  readonly name: string;
  /** The machine that has the address; null for a virtual address, which all have. */
  readonly machine: string | null;
  /** The service's address; null if it has none (endpoint mode dnsrr). */
  readonly virtualAddress: string | null;
  /** The running, healthy tasks of the service, and the machines that they are on. */
  readonly tasks: number;
  readonly machines: number;
}

/** Writes "2 tasks on 1 machine", for example. */
export function tasksText({ tasks, machines }: Pick<SwarmPlace, "tasks" | "machines">): string {
  if (tasks === 0) return "no healthy task";
  return `${tasks} ${tasks === 1 ? "task" : "tasks"} on ${machines} ${machines === 1 ? "machine" : "machines"}`;
}
