/**
 * Nodes: which of the running containers are KIND nodes, each with its mode for as long as it runs.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { O_PATH, closeQuietly, openInRoot } from "../../kernel/libc.ts";
import type { KindPolicy } from "../../base/model/kind-policy.ts";
import { LABEL_DEFAULTS, type LabelPolicy } from "../../base/model/label-policy.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import { withContainerRoot } from "../namespace/container-root.ts";
import type { EngineHost } from "../namespace/engine-host.ts";
import type { NodeContext } from "../names/name-source.ts";
import type { ContainerFact, NetworkFact } from "../registry/fact.ts";
import type { Journal } from "./journal.ts";
import { type NodeFact, nodeFactOf } from "./node-fact.ts";
import { NodeMode, type NodeParts } from "./node-mode.ts";
import { type NodeFiles, NodeResolvConf } from "./node-resolv-conf.ts";
import { configuredAddresses } from "./advertised-addresses.ts";
import { isMountedIn } from "./resolv-conf-file.ts";
import { ignoredNodeLabel, isNode } from "./selection.ts";

export interface NodesParts {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly journal: Journal;
  readonly host: () => EngineHost;
  readonly networkOf: (id: string) => NetworkFact | undefined;
  /** Other addresses may be a node's now. */
  readonly onChange: (containerId: string) => void;
  readonly onEvent: NodeParts["onEvent"];
}

interface KnownNode {
  readonly mode: NodeMode;
  readonly way: KindPolicy["mode"];
}

export class Nodes {
  readonly #parts: NodesParts;
  readonly #known = new Map<string, KnownNode>();
  /** By container, the start that somebody wanted to be left alone. */
  readonly #detached = new Map<string, string>();
  #policy: KindPolicy;
  #labelPolicy: LabelPolicy;
  #hostGateway: string | undefined;

  constructor(parts: NodesParts, policy: KindPolicy, labelPolicy: LabelPolicy = LABEL_DEFAULTS) {
    this.#parts = parts;
    this.#policy = policy;
    this.#labelPolicy = labelPolicy;
  }

  /** From now on; modes made before go on until their containers are decided about again. */
  setPolicy(policy: KindPolicy, labelPolicy: LabelPolicy): void {
    this.#policy = policy;
    this.#labelPolicy = labelPolicy;
  }

  /** How the engine's host can be reached from any container, where that is known; returns whether any node cares. */
  setHostGateway(address: string | undefined): boolean {
    const isNew = address !== this.#hostGateway;
    this.#hostGateway = address;
    return isNew && this.#policy.nodes.length > 0;
  }

  isNode(fact: ContainerFact): boolean {
    return isNode(fact, this.#policy.nodes, this.#labelPolicy);
  }

  /** What its image says of that, where it does not count. */
  ignoredLabel(fact: ContainerFact): string | undefined {
    return ignoredNodeLabel(fact, this.#policy.nodes, this.#labelPolicy);
  }

  isDetached(fact: ContainerFact): boolean {
    return this.#detached.get(fact.id) === fact.startedAt;
  }

  /** Until the container is started anew, or attached again. */
  setDetached(fact: ContainerFact, isDetached: boolean): void {
    if (isDetached) this.#detached.set(fact.id, fact.startedAt);
    else this.#detached.delete(fact.id);
  }

  /** The mode of this start of the node, the same object each time unless settings want another one. */
  ensureMode(container: ContainerFact): NodeMode {
    const fact = nodeFactOf(container, this.#parts.networkOf, this.#hostGateway);
    const known = this.#known.get(container.id);
    // By another way other sockets are needed; all else is a matter of rules.
    if (known?.way === this.#policy.mode && known.mode.fact.startedAt === fact.startedAt) {
      if (known.mode.update(fact, this.#policy)) this.#parts.onChange(container.id);
      return known.mode;
    }
    const mode = new NodeMode(fact, this.#policy, {
      ...this.#parts,
      resolvConf: new NodeResolvConf(this.#filesOf(fact)),
      onChange: () => this.#parts.onChange(container.id),
    });
    this.#known.set(container.id, { mode, way: this.#policy.mode });
    return mode;
  }

  /** What its view has to know. */
  placeOf(container: ContainerFact): NodeContext {
    return nodePlaceOf(this.#policy, nodeFactOf(container, this.#parts.networkOf, this.#hostGateway));
  }

  /** The mode that was last asked for. */
  currentMode(containerId: string): NodeMode | undefined {
    return this.#known.get(containerId)?.mode;
  }

  forget(containerId: string): void {
    this.#known.delete(containerId);
    this.#detached.delete(containerId);
  }

  #filesOf({ resolvConfPath, pid, containerId }: NodeFact): NodeFiles {
    const { host } = this.#parts;
    const path = resolvConfPath ?? "";
    const inContainer =
      (name: string) =>
      (flags: number): number =>
        withContainerRoot(pid, containerId, host(), (root) => openInRoot(root, name, flags));
    return {
      path,
      openWritten: (flags) => openInRoot(host().root, path, flags),
      openRead: inContainer("/etc/resolv.conf"),
      openOriginal: inContainer("/etc/resolv.conf.original"),
      isContainerFile: () => isContainerResolvConf(host(), path, pid, containerId),
    };
  }
}

export function nodePlaceOf(policy: KindPolicy, fact: NodeFact): NodeContext {
  const { ipv4, ipv6 } = configuredAddresses(policy, fact);
  const { hostDockerInternal: hostName } = policy;
  return {
    ownAddresses: [ipv4, ipv6].filter((address) => address !== undefined),
    hostDockerInternal: hostName === "gateway" ? (fact.hostGateway ?? fact.gateway.ipv4 ?? "deny") : hostName,
  };
}

/** Where a user has mounted a file at that place the engine names that one, which may be anybody's. */
export function isContainerResolvConf(host: EngineHost, path: string, pid: number, containerId: string): boolean {
  if (!path.endsWith(`/${containerId}/resolv.conf`)) return false;
  let file = -1;
  try {
    file = openInRoot(host.root, path, O_PATH);
    const engineFile = file;
    return withContainerRoot(pid, containerId, host, (root) => isMountedIn(engineFile, root));
  } catch {
    return false;
  } finally {
    closeQuietly(file);
  }
}
