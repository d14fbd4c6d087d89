/**
 * SwarmFacts: what an engine lists of a swarm network: its services and their tasks on all machines, as gossip has them.
 */
export interface SwarmTask {
  /** SERVICE.SLOT.ID, or SERVICE.NODE.ID of a global service; the name of a container that was attached by hand. */
  readonly name: string;
  readonly address: string;
  /** The machine that it runs on. */
  readonly host: string;
}

export interface SwarmService {
  /** Empty for containers that were attached by hand. */
  readonly name: string;
  /** Undefined for a service without one (endpoint mode dnsrr). */
  readonly virtualAddress: string | undefined;
  readonly aliases: readonly string[];
  readonly tasks: readonly SwarmTask[];
}

export interface SwarmList {
  readonly services: readonly SwarmService[];
  /** Services and tasks that were left out, because there are too many. */
  readonly omitted: number;
}
