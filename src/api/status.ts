/**
 * Status: the state of dns11 and of every running container, as returned by `GET /v1/status` and `GET /ready`, and the
 * results of repair and reload.
 */
import type { EtcdReport, PublishedReport } from "./etcd.ts";
import type { AnsweredByReport } from "../base/model/answered-by.ts";
import type { CapabilitySets } from "../base/model/capability-sets.ts";
import type { KeeperReport } from "../base/model/keeper-report.ts";
import type { ListenerReport, ListenReports } from "./listener.ts";
import type { NodeReport } from "../base/model/node-report.ts";
import type { SettingOrigins } from "../base/model/setting-origins.ts";
import type { SwarmPlace } from "./names.ts";
import type { RuleBackend } from "../base/model/rule-backend.ts";

/** By which means the host's own programs get container names, and why by this one. */
export interface HostMeansReport {
  readonly means: "resolved" | "capture";
  readonly why: string;
  /** The zones with names of services whose names resolve there, too. */
  readonly zones?: readonly string[];
}

export interface ContainerStatus {
  readonly id: string;
  readonly name: string;
  readonly isPaused: boolean;
  /** Its place in a Compose project; null without one. */
  readonly project: string | null;
  readonly service: string | null;
  readonly networks: readonly string[];
  /** attached and verifying: served by dns11; all others: served by Docker, if at all, unless `isHeld`. */
  readonly state: "attached" | "verifying" | "opening" | "failed" | "skipped" | "quarantined";
  /** Why it is not attached: a code for programs and a sentence for people. */
  readonly code?: string;
  readonly reason?: string;
  /** It has failed, but a policy is enforced: dns11's rules stay, and nobody else answers. */
  readonly isHeld?: true;
  readonly warning?: string;
  /** The name of the container whose network namespace it uses, if that is not its own. */
  readonly sharesWith?: string;
  /** That one is attached, so this one is served, too: its queries are counted there. */
  readonly isServedWith?: true;
  /** It is skipped, and has asked the listener on the host, which answers it. */
  readonly asksListener?: boolean;
  /** The host has it: how its programs get container names, and why so. */
  readonly hostNames?: HostMeansReport;
  /** What may prevent queries from reaching dns11, if that is why it failed. */
  readonly culprits?: readonly string[];
  /** Device and inode of the network namespace. */
  readonly namespace?: string;
  /** Of dns11's sockets in that namespace. */
  readonly ports?: { readonly udp: number; readonly tcp: number };
  /** Since when it is in this state. */
  readonly since?: string;
  /** When dns11 last saw that its queries arrive. */
  readonly verified?: string;
  /** The state of a served KIND node. */
  readonly node?: NodeReport;
  /** Who answers plain queries for local names; missing where only the process is set. */
  readonly answers?: AnsweredByReport;
  /** The servers that its queries are forwarded to. */
  readonly upstreams?: readonly string[];
  /** The swarm services that it is a task of, one on each network, as the engine listed them last. */
  readonly swarm?: readonly SwarmPlace[];
  /** What other machines know of it through etcd; missing where nothing is published. */
  readonly published?: PublishedReport;
  /** How often rules were restored that another program had removed; missing with nft-owner. */
  readonly repairs?: number;
  /** As in `GET /v1/counters`. */
  readonly counters?: Readonly<Record<string, number>>;
  /** The last minute, approximately. */
  readonly recent?: RecentQueries;
}

export interface RecentQueries extends RecentCountsReport {
  /** Lookups that failed: errors, and names like a container's that do not exist. */
  readonly failures: number;
}

/** The names that the operator declares. */
export interface RecordsReport {
  readonly names: number;
  /** Mistakes in the files of the records folder, each with its place. */
  readonly problems: readonly string[];
}

export interface Status {
  readonly version: string;
  readonly pid: number;
  readonly since: string;
  readonly mode: "strict" | "default";
  /** The rule backend. The rules of nft-owner vanish with the process, others stay when it is killed. */
  readonly ruleBackend: RuleBackend;
  /** Who answers plain queries for local names; missing where only the process is set. */
  readonly answers?: AnsweredByReport;
  /** null inside a KIND node, where there is no engine. */
  readonly engine: {
    readonly id: string;
    readonly version: string;
    readonly address: string;
    readonly isConnected: boolean;
    /** How long dockerd has answered nothing, not even whether it is there; missing while it answers, or has ended. */
    readonly silentMs?: number;
  } | null;
  /** The path of the settings file. */
  readonly config: string | null;
  /** The effective value of each key of the settings file, and its source. */
  readonly settings: SettingOrigins;
  /** Of these, what a reload has read and only a restart puts in force, as `KEY: IN FORCE -> READ`; missing without any. */
  readonly afterRestart?: readonly string[];
  /** Every running container has been processed: it is served, or the reason why not is known. */
  readonly isReady: boolean;
  readonly memoryBytes: number;
  /** The capabilities of its threads; threads with the same ones are counted together. */
  readonly capabilities: readonly CapabilitySets[];
  /** The process that hands containers back if this one ends without doing so. */
  readonly keeper: KeeperReport;
  /** The address of the metrics endpoint; null if metrics are only on the control socket. */
  readonly metrics: string | null;
  /** Missing in replies of versions that had none. */
  readonly records?: RecordsReport;
  /** null where etcd is not used; missing in replies of versions that could not. */
  readonly etcd?: EtcdReport | null;
  /** The same for a Kubernetes cluster. */
  readonly cluster?: ClusterReport | null;
  /** null where it is off; missing in replies of versions that had none. */
  readonly listener?: ListenerReport | null;
  /** Where others than containers may ask; null where that is nowhere; missing in replies of versions that had none. */
  readonly listen?: ListenReports | null;
  /** Whom dns11 asks for names in local; null where nobody is asked; missing in replies of versions that could not. */
  readonly mdns?: MdnsReport | null;
  readonly containers: readonly ContainerStatus[];
}

/** Who answers names in local, which machines of the local network announce. */
export interface MdnsReport {
  /** The program of the machine that is asked; null where there is none that can be. */
  readonly by: "avahi-daemon" | "systemd-resolved" | null;
  /** Why names in local fail, and what to do about it; missing while they resolve. */
  readonly problem?: string;
  readonly remedy?: string;
}

/** The response of `POST /v1/repair`. */
export interface RepairReport {
  readonly name: string;
  /** Its rules are in place, it was attached again or for the first time, it failed, or it is not to be served. */
  readonly outcome: "verified" | "reattached" | "released" | "failed" | "not-served";
}

/** The response of `GET /ready`. */
export interface LifecycleReport {
  readonly ready: boolean;
  readonly phase: "starting" | "ready" | "stopping";
  /** What is still missing, as sentences. */
  readonly missing: readonly string[];
  readonly attached: number;
  /** Containers that could not be attached, and why. */
  readonly refused: readonly { readonly container: string; readonly code: string; readonly reason: string }[];
}

/** The response of `POST /v1/reload`. */
export interface ReloadReport {
  readonly config: string;
  /** Each as `KEY: BEFORE -> NOW`. */
  readonly changed: readonly string[];
  /** What has changed since the start and takes effect with the next one only, in the same form. */
  readonly afterRestart: readonly string[];
}

/**
 * The queries of a container in the last minute, approximately.
 */
export interface RecentCountsReport {
  readonly queries: number;
  /** Answers with this response code. */
  readonly nxdomain: number;
  /** Answers with any other response code than NOERROR. */
  readonly errors: number;
}

/**
 * The announcement of test queries, the body and the response of `POST /v1/probes`. They count nowhere as queries of the container.
 */
export interface ProbesRequest {
  /** The name or ID of the container from whose namespace they come. */
  readonly container: string;
  /** Their source ports. Each is valid for one query, within ten seconds. */
  readonly udp: readonly number[];
  readonly tcp: readonly number[];
}

export interface ProbesReport {
  /** Ports that were announced; 0 if the container is not served. */
  readonly announced: number;
}

/**
 * The connection to the API of a Kubernetes cluster and what was read there, as part of the status.
 */
export interface ClusterReport {
  /** Whether the names are those of the cluster, the last known ones, or none that may be answered. */
  readonly state: "current" | "last-known" | "unavailable";
  /** Why they are not current; null if they are. */
  readonly code: string | null;
  readonly reason: string | null;
  readonly remedy: string | null;
  /** Since when they are not confirmed. */
  readonly staleSeconds: number | null;
  /** The URL of the API; null before it is known. */
  readonly server: string | null;
  readonly zone: string;
  readonly services: number;
  readonly endpoints: number;
  /** How often all objects were listed, and how often a stream of changes ended. */
  readonly lists: number;
  readonly reconnects: number;
  /** Objects that are left out because there are too many; and because they are not valid, the first with the reason. */
  readonly refused: number;
  readonly skipped: number;
  readonly problems: readonly { readonly key: string; readonly problem: string }[];
}
