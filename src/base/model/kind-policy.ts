/**
 * KindPolicy: settings for KIND nodes: which containers are nodes, and how their pods reach us.
 */
import type { SettingOrigins } from "./setting-origins.ts";

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

/** The state of a KIND node that dns11 serves, or of a container with an engine inside, and of its resolv.conf. */
export interface NodeReport {
  readonly state: "starting" | "working" | "degraded" | "refused";
  /** Addresses in resolv.conf, and those whose port 53 is redirected to us. */
  readonly advertised: readonly string[];
  readonly captured: readonly string[];
  /** We listen for pods at these, without the ports. */
  readonly target: readonly string[];
  readonly families: readonly ("ipv4" | "ipv6")[];
  readonly mode: KindPolicy["mode"];
  /** The state of the node's resolv.conf. */
  readonly resolvConf: string;
  readonly lastChange: string | null;
  /** The time at which a query of a probe pod last arrived, or failed to. */
  readonly lastProbe: string | null;
  /** Packets sent to our ports directly instead of being redirected there. */
  readonly dropped: number;
  readonly reasons: readonly string[];
  /** It has an engine or a builder inside, and is no node of a cluster. */
  readonly isNested?: true;
  /** What will not work after dns11 has stopped. */
  readonly warnings: readonly string[];
}

/**
 * What to do so that dns11 serves KIND nodes, by how it runs: the commands and the doctor say the same.
 * What decides, of the status of a dns11.
 */
export interface ServedKind {
  readonly config: string | null;
  readonly settings: SettingOrigins;
}

/** undefined: none runs. */
export function startText(status: ServedKind | undefined): string {
  if (status === undefined) {
    return "dns11 does not run. Start it with: sudo dns11 run --kind auto. As a service: `kind: {nodes: [auto]}` in its settings file, then systemctl start dns11.";
  }
  const nodes = status.settings["kind.nodes"]?.value;
  if (Array.isArray(nodes) && nodes.length > 0) {
    return `dns11 runs and serves the nodes that kind.nodes selects (${nodes.map(String).join(", ")}): dns11 ps says of each container why it is not served.`;
  }
  return status.config === null
    ? "dns11 runs without --kind. Stop it, and start it with: sudo dns11 run --kind auto."
    : `dns11 runs, and its settings select no nodes. Add \`kind: {nodes: [auto]}\` to ${status.config}, then run: dns11 reload.`;
}
