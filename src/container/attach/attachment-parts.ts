/**
 * AttachmentParts: what every attachment is given, and whom it tells.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { RuleBackendChoice } from "../../base/model/rule-backend.ts";
import type { HeldNamespace, Keep } from "../../base/model/held-namespace.ts";
import type { NamespaceRunner, NamespaceId } from "../namespace/namespace-runner.ts";
import type { EngineHost } from "../namespace/engine-host.ts";
import type { NamespaceClaim, ProvenNamespace } from "../namespace/proof.ts";
import type { OpenEndpoint } from "./endpoint.ts";

/** What helps where there are too few descriptors. */
export const MORE_DESCRIPTORS = "Raise the limit of open files: LimitNOFILE= under systemd, ulimit -n in a shell.";

export interface AttachmentParts {
  readonly runner: NamespaceRunner;
  readonly host: () => EngineHost;
  /** Opens the namespace that is claimed, or throws a Fault that says why it is not to be believed. */
  readonly prove: (claim: NamespaceClaim) => ProvenNamespace;
  readonly memory: NetlinkMemory;
  readonly ruleBackend: RuleBackendChoice;
  /** How many files and sockets this process may have. */
  readonly descriptorsMax: number;
  /** Another connection tracking zone each time. */
  readonly nextZone: () => number;
  readonly openEndpoint: OpenEndpoint;
  /** Holds copies of what a namespace is served by, as long as it is. */
  readonly keep?: Keep | undefined;
  /** What a process before us served this namespace by and left to us; told once. */
  readonly inherit?: ((id: NamespaceId) => HeldNamespace | undefined) | undefined;
  /** Told whose counters grow from now on, and when they no longer do. */
  readonly onServing?: (containerId: string, counters: Readonly<Record<string, number>>, isServing: boolean) => void;
  /** It is in another state. */
  readonly onState: () => void;
  /** Foreign rules changed in this namespace, or may have. */
  readonly onForeignChange: () => void;
}
