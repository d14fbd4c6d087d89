/**
 * NameChoices: what Docker fixes for the names of containers, and dns11 lets settings choose for all of them, or a label for
 * one.
 */

/** Whether containers on Docker's default bridge are served, and see each other by name. */
export const DEFAULT_BRIDGE_SETTINGS = ["off", "names"] as const;
export type DefaultBridgeSetting = (typeof DEFAULT_BRIDGE_SETTINGS)[number];

/**
 * Whether host.docker.internal, without an entry from `--add-host`, is the host's address on the default bridge.
 */
export const HOST_NAME_SETTINGS = ["off", "gateway"] as const;
export type HostNameSetting = (typeof HOST_NAME_SETTINGS)[number];

/**
 * Whose names a container resolves: those of its own networks, as with Docker; also NAME.NETWORK of other networks of its
 * Compose project; or of all networks.
 */
export const VISIBLE_SETTINGS = ["network", "project", "all"] as const;
export type VisibleSetting = (typeof VISIBLE_SETTINGS)[number];

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
