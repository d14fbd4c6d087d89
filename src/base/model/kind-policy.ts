/**
 * KindPolicy: settings for KIND nodes: which containers are nodes, and how their pods reach us.
 */

/** `auto`, `label=KEY[=VALUE]` and `name=PATTERN`, in which `*` stands for anything. */
export type NodeFilter =
  | { readonly kind: "auto" }
  | { readonly kind: "label"; readonly key: string; readonly value: string | undefined }
  | { readonly kind: "name"; readonly pattern: string };

/** Keywords for the address that pods query; anything else is an IP address. */
export const NODE_ADDRESS_WORDS = ["auto", "gateway", "node", "host"] as const;

/**
 * Whether we listen on an address of the node, or on its 127.0.0.11, which takes route_localnet for packets from
 * outside.
 */
export const KIND_MODES = ["listener", "loopback"] as const;
export type KindMode = (typeof KIND_MODES)[number];

/** Address families that the node's resolv.conf lists. */
export const NODE_FAMILIES = ["auto", "ipv4", "ipv6", "both"] as const;
type NodeFamilies = (typeof NODE_FAMILIES)[number];

/** How host.docker.internal resolves; anything else is its address. */
export const HOST_DOCKER_INTERNAL_WORDS = ["deny", "gateway", "forward"] as const;

export interface KindPolicy {
  /** A container that matches one of them is a node; empty: there are no nodes. */
  readonly nodes: readonly NodeFilter[];
  /** One of NODE_ADDRESS_WORDS, or an address. */
  readonly address: string;
  readonly mode: KindMode;
  readonly families: NodeFamilies;
  /** Whether others on the node's networks may query us too. */
  readonly isExposed: boolean;
  /** Whether to take port 53 of the node although another process listens there. */
  readonly isForced: boolean;
  /** One of HOST_DOCKER_INTERNAL_WORDS, or an address. */
  readonly hostDockerInternal: string;
  /**
   * An engine inside forwards no name without a dot if the file that it takes its servers from says ndots, as Docker's does. So that
   * option is left out.
   */
  readonly isNested?: true;
}

/**
 * Containers with an engine, or a builder, of their own: what runs inside reaches dns11 as pods of a node do. Nothing of it is to be set: names
 * are those of the outer container.
 */
export function nestedPolicy(nodes: readonly NodeFilter[]): KindPolicy {
  return { ...KIND_DEFAULTS, nodes, hostDockerInternal: "forward", isNested: true };
}

export const KIND_DEFAULTS: KindPolicy = {
  nodes: [],
  address: "auto",
  mode: "listener",
  families: "auto",
  isExposed: false,
  isForced: false,
  hostDockerInternal: "deny",
};
