/**
 * NameChoices: what Docker fixes for the names of all containers, and dns11 lets a setting choose for all of them, or a label
 * for one.
 */

/** What an address points to: NAME.NETWORK, as in Docker; the container's hostname; or that with its domain name. */
export const PTR_FORMS = ["network", "hostname", "fqdn"] as const;
export type PtrForm = (typeof PTR_FORMS)[number];

/** The order of several addresses: another one in each answer, as in Docker, or always the lowest first. */
export const ADDRESS_ORDERS = ["shuffle", "sorted"] as const;
export type AddressOrder = (typeof ADDRESS_ORDERS)[number];

export interface NameChoices {
  readonly ptr: PtrForm;
  readonly order: AddressOrder;
}

/** Docker's own choices. */
export const NAME_CHOICES_DEFAULTS: NameChoices = { ptr: "network", order: "shuffle" };
