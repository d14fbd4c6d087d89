/**
 * Nodes: the KIND nodes among the running containers, each with its NodeMode for as long as it runs.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { openInRoot } from "../../kernel/libc.ts";
import type { LabelPolicy } from "../../base/model/name-choices.ts";
import type { Settings } from "../../config/settings.ts";
import type { NamespaceRunner } from "../../container/namespace/namespace-runner.ts";
import { withContainerRoot } from "../../container/namespace/container-root.ts";
import type { EngineHost } from "../../container/namespace/engine-host.ts";
import type { NodeContext } from "../../container/names/source/name-source.ts";
import type { ContainerFact, NetworkFact } from "../../container/facts/fact.ts";
import type { Journal } from "../../container/files/journal.ts";
import { type NodeFact, nodeFactOf } from "./node-fact.ts";
import { NodeMode, type NodeParts } from "./node-mode.ts";
import { type ResolvConfFiles, WrittenResolvConf } from "../../container/files/written-resolv-conf.ts";
import { configuredAddresses } from "./advertised-addresses.ts";
import { isContainerResolvConf } from "../../container/files/resolv-conf-file.ts";
import { type KindPolicy, kindOf, nestedOf } from "./feature.ts";
import { ignoredNodeLabel, isNode, isSelected } from "./selection.ts";

interface NodesParts {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly journal: Journal;
  readonly host: () => EngineHost;
  readonly networkOf: (id: string) => NetworkFact | undefined;
  /** The captured addresses of a node may have changed. */
  readonly onChange: (containerId: string) => void;
  readonly onEvent: NodeParts["onEvent"];
}

type NodeSettings = Pick<Settings, "features" | "labels">;

interface KnownNode {
  readonly mode: NodeMode;
  readonly kindMode: KindPolicy["mode"];
}

export class Nodes {
  readonly #parts: NodesParts;
  readonly #nodes = new Map<string, KnownNode>();
  /** The key is the container ID, the value the start of the container that a user detached. */
  readonly #detached = new Map<string, string>();
  #policy: KindPolicy;
  /** That of containers with an engine or a builder inside. */
  #nested: KindPolicy;
  #labelPolicy: LabelPolicy;
  #hostGateway: string | undefined;

  constructor(parts: NodesParts, settings: NodeSettings) {
    this.#parts = parts;
    this.#policy = kindOf(settings);
    this.#nested = nestedOf(settings);
    this.#labelPolicy = settings.labels;
  }

  /** New decisions use them; existing modes keep the old ones until their container is decided again. */
  configure(settings: NodeSettings): void {
    this.#policy = kindOf(settings);
    this.#nested = nestedOf(settings);
    this.#labelPolicy = settings.labels;
  }

  /** The address of the engine's host for containers, if known. Returns whether it may affect a node. */
  setHostGateway(address: string | undefined): boolean {
    const isNew = address !== this.#hostGateway;
    this.#hostGateway = address;
    return isNew && this.#policy.nodes.length > 0;
  }

  /** Whether others than itself ask dns11 through it. */
  isNode(fact: ContainerFact): boolean {
    return this.#isOfCluster(fact) || isSelected(fact, this.#nested.nodes, this.#labelPolicy);
  }

  isNested(fact: ContainerFact): boolean {
    return this.isNode(fact) && !this.#isOfCluster(fact);
  }

  /** A warning about an image label that is ignored. */
  ignoredLabel(fact: ContainerFact): string | undefined {
    const filters = [...this.#policy.nodes, ...this.#nested.nodes];
    return ignoredNodeLabel(fact, filters, this.#labelPolicy);
  }

  isDetached(fact: ContainerFact): boolean {
    return this.#detached.get(fact.id) === fact.startedAt;
  }

  /** Lasts until the container restarts or is attached again, and no longer than this process. */
  setDetached(fact: ContainerFact, isDetached: boolean): void {
    if (isDetached) this.#detached.set(fact.id, fact.startedAt);
    else this.#detached.delete(fact.id);
  }

  /** Creates or updates the mode of this start of the node. It stays the same object unless the kind mode changes. */
  ensureMode(container: ContainerFact): NodeMode {
    const fact = nodeFactOf(container, this.#parts.networkOf, this.#hostGateway);
    const policy = this.#policyOf(container);
    const known = this.#nodes.get(container.id);
    // Another kind mode needs other sockets; all other changes only affect rules.
    if (known?.kindMode === policy.mode && known.mode.fact.startedAt === fact.startedAt) {
      if (known.mode.update(fact, policy)) this.#parts.onChange(container.id);
      return known.mode;
    }
    const mode = new NodeMode(fact, policy, {
      ...this.#parts,
      resolvConf: new WrittenResolvConf(this.#filesOf(fact)),
      onChange: () => this.#parts.onChange(container.id),
    });
    this.#nodes.set(container.id, { mode, kindMode: policy.mode });
    return mode;
  }

  /** What the node's names depend on. */
  placeOf(container: ContainerFact): NodeContext {
    return nodePlaceOf(this.#policyOf(container), nodeFactOf(container, this.#parts.networkOf, this.#hostGateway));
  }

  /** The mode from the last ensureMode(). */
  currentMode(containerId: string): NodeMode | undefined {
    return this.#nodes.get(containerId)?.mode;
  }

  forget(containerId: string): void {
    this.#nodes.delete(containerId);
    this.#detached.delete(containerId);
  }

  #isOfCluster(fact: ContainerFact): boolean {
    return isNode(fact, this.#policy.nodes, this.#labelPolicy);
  }

  #policyOf(fact: ContainerFact): KindPolicy {
    return this.isNested(fact) ? this.#nested : this.#policy;
  }

  #filesOf({ resolvConfPath, pid, containerId }: NodeFact): ResolvConfFiles {
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
  const { hostDockerInternal } = policy;
  return {
    ownAddresses: [ipv4, ipv6].filter((address) => address !== undefined),
    hostDockerInternalBy: "kind.host-docker-internal",
    hostDockerInternal:
      hostDockerInternal === "gateway" ? (fact.hostGateway ?? fact.gateway.ipv4 ?? "deny") : hostDockerInternal,
  };
}
