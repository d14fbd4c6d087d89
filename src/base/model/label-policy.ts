/**
 * LabelPolicy: what labels of containers may say, as far as settings decide it.
 */

/**
 * Where the servers of a label are asked from: inside the container; the host, except for what only the host itself can
 * reach; the host, whatever the label names.
 */
export const LABEL_SERVERS = ["container", "host", "any"] as const;
export type LabelServers = (typeof LABEL_SERVERS)[number];

export interface LabelPolicy {
  /** Whether an image's labels count as those that the container's creator gave. */
  readonly trustsImages: boolean;
  readonly servers: LabelServers;
}

export const LABEL_DEFAULTS: LabelPolicy = { trustsImages: false, servers: "container" };
