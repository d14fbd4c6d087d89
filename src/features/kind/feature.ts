import { addressBytes } from "../../base/model/address.ts";
import type { SettingOrigins } from "../../base/model/setting-origins.ts";
import { BOOLEAN, type Kind, oneOf, quoteValue, readText } from "../../config/kinds.ts";
import { featureValues, list, one } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";
import { isNested } from "../../config/zone-name.ts";

/** `auto`, `label=KEY[=VALUE]` and `name=PATTERN`, in which `*` stands for anything. */
export type NodeFilter =
  | { readonly kind: "auto" }
  | { readonly kind: "label"; readonly key: string; readonly value: string | undefined }
  | { readonly kind: "name"; readonly pattern: string };

/** Keywords for the address that pods query; anything else is an IP address. */
const NODE_ADDRESS_WORDS = ["auto", "gateway", "node", "host"] as const;

/**
 * Whether we listen on an address of the node, or on its 127.0.0.11, which takes route_localnet for packets from
 * outside.
 */
export const KIND_MODES = ["listener", "loopback"] as const;
export type KindMode = (typeof KIND_MODES)[number];

/** Address families that the node's resolv.conf lists. */
const NODE_FAMILIES = ["auto", "ipv4", "ipv6", "both"] as const;
type NodeFamilies = (typeof NODE_FAMILIES)[number];

/** How host.docker.internal resolves; anything else is its address. */
const HOST_DOCKER_INTERNAL_WORDS = ["deny", "gateway", "forward"] as const;

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

export const KIND_DEFAULTS: KindPolicy = {
  nodes: [],
  address: "auto",
  mode: "listener",
  families: "auto",
  isExposed: false,
  isForced: false,
  hostDockerInternal: "deny",
};

/** How settings select the containers that are KIND nodes. */
const NODE_FILTER_FORMS = "auto, label=KEY, label=KEY=VALUE or name=PATTERN";

export const NODE_FILTER: Kind<NodeFilter> = {
  read: (value) => {
    const filter = parseNodeFilter(readText(value));
    if (filter === undefined) throw new Error(`invalid node filter ${quoteValue(value)}: use ${NODE_FILTER_FORMS}`);
    return filter;
  },
  write: nodeFilterText,
};

/** Nothing says of a container that it has an engine inside. */
const NESTED_FILTER: Kind<NodeFilter> = {
  read: (value) => {
    const filter = parseNodeFilter(readText(value));
    if (filter !== undefined && filter.kind !== "auto") return filter;
    throw new Error(`invalid filter ${quoteValue(value)}: use name=PATTERN, label=KEY or label=KEY=VALUE`);
  },
  write: nodeFilterText,
};

const LOOPBACK = /^127\.|^::1?$|^0\./;

/** One of the words, or an IP address that is the same from everywhere: neither link-local nor loopback. */
function wordOrAddress(words: readonly string[], why: string): Kind<string> {
  return {
    read: (value) => {
      const text = readText(value);
      if (words.includes(text)) return text;
      if (addressBytes(text) === undefined || text.includes("%")) {
        throw new Error(`invalid value ${quoteValue(value)}: use one of ${words.join(", ")} or an IP address`);
      }
      if (LOOPBACK.test(text)) throw new Error(`invalid address ${quoteValue(value)}: a loopback address ${why}`);
      return text;
    },
  };
}

const settings = {
  "kind.nodes": list(NODE_FILTER, "serve the pods of KIND nodes: auto, label=KEY[=VALUE] or name=PATTERN", {
    flag: "kind <nodes>",
    fallback: KIND_DEFAULTS.nodes,
    needsEngine: true,
  }),
  "kind.ip": one(
    wordOrAddress(NODE_ADDRESS_WORDS, "cannot be reached from pods"),
    KIND_DEFAULTS.address,
    `nameserver address for pods: ${NODE_ADDRESS_WORDS.join(", ")}, or an IP address`,
  ),
  "kind.mode": one(oneOf(KIND_MODES), KIND_DEFAULTS.mode, `how pods reach dns11: ${KIND_MODES.join(", ")}`),
  "kind.families": one(
    oneOf(NODE_FAMILIES),
    KIND_DEFAULTS.families,
    "address families of the nameservers in a node's resolv.conf",
  ),
  "kind.expose": one(BOOLEAN, KIND_DEFAULTS.isExposed, "also answer other containers on the node's networks"),
  "kind.force": one(BOOLEAN, KIND_DEFAULTS.isForced, "use the node's port 53 even if another process listens there"),
  "kind.host-docker-internal": one(
    wordOrAddress(HOST_DOCKER_INTERNAL_WORDS, "is the pod itself in each pod"),
    KIND_DEFAULTS.hostDockerInternal,
    "how host.docker.internal resolves in pods",
  ),
  nested: list(
    NESTED_FILTER,
    "answer what runs inside these containers, such as docker-in-docker or a builder: name=PATTERN or label=KEY[=VALUE]",
  ),
};

/** The domain of every cluster that KIND makes, unless it is changed by hand. */
const CLUSTER_DOMAIN = "cluster.local";

/** KIND nodes, and containers with an engine or a builder inside: what runs in them is answered, too. */
export const KIND = {
  settings,
  conflicts,
  labelKeys: (all: Pick<Settings, "features">): readonly string[] =>
    [...kindOf(all).nodes, ...nestedOf(all).nodes].flatMap((filter) => (filter.kind === "label" ? filter.key : [])),
  commands: { kind: { group: "Run:", load: async () => await import("./command.ts") } },
  report: async () => await import("./report.ts"),
  inNode: async () => await import("./in-node.ts"),
  load: async () => await import("./kind.ts"),
} as const;

/** Which containers are KIND nodes, and how their pods reach us. */
export function kindOf(all: Pick<Settings, "features">): KindPolicy {
  const values = featureValues(settings, all);
  return {
    nodes: values["kind.nodes"],
    address: values["kind.ip"],
    mode: values["kind.mode"],
    families: values["kind.families"],
    isExposed: values["kind.expose"],
    isForced: values["kind.force"],
    hostDockerInternal: values["kind.host-docker-internal"],
  };
}

/**
 * Containers with an engine, or a builder, of their own: what runs inside reaches dns11 as pods of a node do. Nothing of it is to be set: names
 * are those of the outer container.
 */
export function nestedOf(all: Pick<Settings, "features">): KindPolicy {
  const { nested: nodes } = featureValues(settings, all);
  return { ...KIND_DEFAULTS, nodes, hostDockerInternal: "forward", isNested: true };
}

function conflicts(all: Settings): readonly (readonly ["zone", string])[] {
  const zone = kindOf(all).nodes.length === 0 ? undefined : all.zones.find((each) => isNested(CLUSTER_DOMAIN, each));
  if (zone === undefined) return [];
  const what = `zone "${zone}" would hide the domain of KIND clusters (${CLUSTER_DOMAIN}) in their nodes: use another zone, such as docker.test`;
  return [["zone", what]];
}

/** Parses one filter; undefined if it has none of the forms. */
function parseNodeFilter(text: string): NodeFilter | undefined {
  if (text === "auto") return { kind: "auto" };
  const [, kind, rest] = /^(label|name)=(.+)$/s.exec(text) ?? [];
  if (rest === undefined) return undefined;
  if (kind === "name") return { kind: "name", pattern: rest };
  const [, key, value] = /^([^=]+)(?:=(.*))?$/s.exec(rest) ?? [];
  return key === undefined ? undefined : { kind: "label", key, value };
}

function nodeFilterText(filter: NodeFilter): string {
  if (filter.kind === "auto") return "auto";
  if (filter.kind === "name") return `name=${filter.pattern}`;
  return `label=${filter.key}${filter.value === undefined ? "" : `=${filter.value}`}`;
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
