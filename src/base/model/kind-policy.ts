/**
 * KindPolicy: what settings say about KIND nodes: which containers are some, and how their pods are to reach us.
 */

/** `auto`, `label=KEY[=VALUE]` and `name=PATTERN`, in which `*` stands for anything. */
export type NodeFilter =
  | { readonly kind: "auto" }
  | { readonly kind: "label"; readonly key: string; readonly value: string | undefined }
  | { readonly kind: "name"; readonly pattern: string };

/** The words for where pods ask; anything else is an address. */
export const NODE_ADDRESS_WORDS = ["auto", "gateway", "node", "host"] as const;

/** Whether we listen on an address of the node, or on its 127.0.0.11, to which packets from outside must be let in. */
export const KIND_MODES = ["listener", "loopback"] as const;
type KindMode = (typeof KIND_MODES)[number];

/** Which addresses the node's resolv.conf names. */
export const NODE_FAMILIES = ["auto", "ipv4", "ipv6", "both"] as const;
type NodeFamilies = (typeof NODE_FAMILIES)[number];

/** Where route_localnet is set for the way `loopback`. */
export const ROUTE_LOCALNET_SCOPES = ["devices", "all"] as const;

/** What becomes of host.docker.internal; anything else is the address that it has. */
export const HOST_DOCKER_INTERNAL_WORDS = ["deny", "gateway", "forward"] as const;

export interface KindPolicy {
  /** Any of them makes a container a node; none: there are no nodes. */
  readonly nodes: readonly NodeFilter[];
  /** One of NODE_ADDRESS_WORDS, or an address. */
  readonly address: string;
  readonly mode: KindMode;
  readonly families: NodeFamilies;
  readonly routeLocalnet: (typeof ROUTE_LOCALNET_SCOPES)[number];
  /** Whether whoever shares a network with the node may ask, too. */
  readonly isExposed: boolean;
  /** Whether port 53 of the node is taken although somebody listens there. */
  readonly isForced: boolean;
  /** One of HOST_NAME_WORDS, or an address. */
  readonly hostDockerInternal: string;
}

export const KIND_DEFAULTS: KindPolicy = {
  nodes: [],
  address: "auto",
  mode: "listener",
  families: "auto",
  routeLocalnet: "devices",
  isExposed: false,
  isForced: false,
  hostDockerInternal: "deny",
};
