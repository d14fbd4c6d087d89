/**
 * AttachmentParts: what every attachment is built from, and its callbacks.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { RuleBackendChoice } from "../../base/model/rule-backend.ts";
import type { Server, View } from "../../base/model/view.ts";
import type { HeldNamespace, Keep, Refusing } from "../../base/model/held-namespace.ts";
import type { NamespaceRunner, NamespaceId } from "../namespace/namespace-runner.ts";
import type { EngineHost } from "../namespace/engine-host.ts";
import type { NamespaceClaim, ProvenNamespace } from "../namespace/proof.ts";
import type { NamespaceExtra } from "./namespace-extra.ts";
import type { NamespaceSockets } from "../namespace/sockets.ts";
import type { ProbeTarget } from "../rules/probe.ts";

/** The remedy for too few file descriptors. */
export const MORE_DESCRIPTORS =
  "Raise the limit of open files: LimitNOFILE= under systemd, ulimit -n in a shell, --ulimit nofile= in a container.";

export interface LockWait {
  readonly isWaiting: boolean;
  /** It is the lock of the container's own namespace, not one that all changes of nf_tables take. */
  readonly isOwn: boolean;
  readonly waitedMs: number;
}

export interface AttachmentParts {
  readonly runner: NamespaceRunner;
  readonly host: () => EngineHost;
  /** Opens the claimed namespace, or throws a Fault if it is not the container's. */
  readonly prove: (claim: NamespaceClaim) => ProvenNamespace;
  readonly memory: NetlinkMemory;
  readonly ruleBackend: RuleBackendChoice;
  /** The process's limit of open files. */
  readonly descriptorsMax: number;
  /** Returns a new conntrack zone each time. */
  readonly nextZone: () => number;
  readonly openEndpoint: OpenEndpoint;
  /** Opens a socket to a server in the namespace of the node that it is queried from. Throws a Fault without one. */
  readonly dialInNode?: ((server: Server, type: "udp" | "tcp") => number) | undefined;
  /** Whether rules on the host may redirect our own queries there, so that these need the mark that exempts them. */
  readonly isHostCaptured?: (() => boolean) | undefined;
  /** Hands copies of a namespace's descriptors to the keeper for as long as it is served. */
  readonly keep?: Keep | undefined;
  /** Whether a policy is enforced for the container, so that Docker's resolver must not answer it. */
  readonly isEnforced?: ((containerId: string) => boolean) | undefined;
  /** Undefined where nobody can refuse anything. */
  readonly refusing?: Refusing | undefined;
  /** Undefined where nothing is in namespaces besides sockets and rules. */
  readonly extra?: NamespaceExtra | undefined;
  /** What the old process held for this namespace; returned once. */
  readonly inherit?: ((id: NamespaceId) => HeldNamespace | undefined) | undefined;
  /** The namespace could not be served with what the old process held. */
  readonly disinherit?: ((id: NamespaceId) => void) | undefined;
  /** Called when an endpoint starts and stops counting. */
  readonly onServing?: (containerId: string, counters: Readonly<Record<string, number>>, isServing: boolean) => void;
  /** Called when the state changes. */
  readonly onState: () => void;
  /** Called when a change waits for a lock for too long, and when it has been made after all. */
  readonly onLocked?: ((containerId: string, wait: LockWait) => void) | undefined;
  /** Called when foreign rules in this namespace have changed or may have. */
  readonly onForeignChange: () => void;
  /** Called when the namespace is to be verified. */
  readonly onVerifyDue?: (() => void) | undefined;
}

/** What answers queries on the sockets of one namespace. The query side implements it. */
export interface Endpoint {
  readonly probeTarget: ProbeTarget;
  /** That of the query side's client. */
  readonly clientNumber: number;
  setView(view: View): void;
  /** Listens on these sockets, too, and owns them, also those on which it cannot listen. */
  add(sockets: readonly NamespaceSockets[]): void;
  /** Queries of this namespace that are in flight upstream. */
  readonly inFlight: number;
  /** Client ports of TCP connections on which an answer is still due. */
  readonly tcpClientPorts: readonly number[];
  readonly counters: Readonly<Record<string, number>>;
  /** Stops reading from the sockets and still answers what was read. Returns the new descriptors, in the same order; or throws and reads on. */
  pause(): readonly Pick<NamespaceSockets, "udp" | "tcp">[];
  resume(): void;
  close(): void;
}

/** Opens a socket to a server, in the namespace or on the engine's host. */
type DialUpstream = (server: Server, type: "udp" | "tcp") => number;

/** Opens an endpoint that has no sockets yet. */
export type OpenEndpoint = (view: View, dial: DialUpstream) => Endpoint;

/** Returns how to open the endpoint of one container, under whose id queries are recorded. */
export type OpenEndpointFor = (containerId: string) => OpenEndpoint;
