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

/**
 * What Docker's health checks mean for a name that several containers have. A name is never left without an
 * address because of it, and a container keeps its own name.
 */
export const HEALTH_POLICIES = ["ignore", "last-resort", "exclude"] as const;
export type HealthPolicy = (typeof HEALTH_POLICIES)[number];

/** The result of Docker's check; undefined for a container without one. */
export type Health = "starting" | "healthy" | "unhealthy";

/** Whether a container is left out of the names that it shares, as long as another one is not. */
export function isLeftOut(health: Health | undefined, policy: HealthPolicy): boolean {
  if (policy === "ignore") return false;
  return health === "unhealthy" || (health === "starting" && policy === "exclude");
}

/**
 * Where servers in a label are queried from: inside the container; from the host, except for addresses that only the
 * host can reach; from the host, for any address.
 */
export const LABEL_SERVERS = ["container", "host", "any"] as const;
export type LabelServers = (typeof LABEL_SERVERS)[number];

/** What container labels may configure, as far as settings decide it. */
export interface LabelPolicy {
  /** Whether labels of an image count like those given at container creation. */
  readonly trustsImages: boolean;
  readonly servers: LabelServers;
}

export const LABEL_DEFAULTS: LabelPolicy = { trustsImages: false, servers: "container" };
