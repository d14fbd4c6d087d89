/**
 * Owners: the containers that have the addresses of an answer, as part of explanations, lookups and queries.
 */

/** The container that has an address. */
export interface AddressOwner {
  readonly address: string;
  readonly container: string;
  readonly network: string;
  /** Its Compose project and service, if any. */
  readonly project: string | null;
  readonly service: string | null;
}
