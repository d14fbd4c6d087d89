/**
 * LabelPolicy: what container labels may configure, as far as settings decide it.
 */

/**
 * Where servers in a label are queried from: inside the container; from the host, except for addresses that only the
 * host can reach; from the host, for any address.
 */
export const LABEL_SERVERS = ["container", "host", "any"] as const;
export type LabelServers = (typeof LABEL_SERVERS)[number];

export interface LabelPolicy {
  /** Whether labels of an image count like those given at container creation. */
  readonly trustsImages: boolean;
  readonly servers: LabelServers;
}

export const LABEL_DEFAULTS: LabelPolicy = { trustsImages: false, servers: "container" };
