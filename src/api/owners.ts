/**
 * Owners: the containers that have the addresses of an answer, as part of explanations, lookups and queries.
 */

import type { SwarmPlace } from "../base/model/swarm-place.ts";

/** The container that has an address. */
export interface AddressOwner {
  readonly address: string;
  /** A virtual address has the swarm service here. */
  readonly container: string;
  readonly network: string;
  /** Its Compose project and service, if any. */
  readonly project: string | null;
  readonly service: string | null;
  /** It is not on this engine: where it is in the swarm, as the engine listed it last. */
  readonly swarm?: SwarmPlace;
}
