/**
 * Ports: what the control socket needs of a run in order to answer. A run on a machine fills them from its roster, one
 * inside a KIND node from the only container that it has.
 */
import type { Attachment } from "../container/attach/attachment.ts";
import type { Decision } from "../container/attach/decision.ts";
import type { ContainerFact } from "../container/registry/fact.ts";
import type { ResolvConf } from "../container/watch/resolv-conf.ts";
import type { NodeReport } from "../base/model/node-report.ts";
import type { Server, View } from "../base/model/view.ts";
import type { RepairReport, ReloadReport, Status } from "../api/status.ts";
import type { Answerer } from "../query/answer.ts";
import type { ReplyCache } from "../query/cache/reply-cache.ts";
import type { AdaptiveForwarder } from "../query/forward/adaptive.ts";
import type { QueryHistories } from "../query/history/query-histories.ts";
import type { Forward } from "../query/ports.ts";
import type { NameserverPool } from "../query/upstream/nameserver-pool.ts";
import type { StoppedContainer } from "./hints.ts";
import type { QueryReader } from "./query-reader.ts";

/** What runs, and what is done for each. */
export interface Containers {
  /** By id. */
  readonly facts: ReadonlyMap<string, ContainerFact>;
  readonly decisionOf: (id: string) => Decision | undefined;
  readonly attachmentOf: (id: string) => Attachment | undefined;
  readonly viewOf: (fact: ContainerFact) => View;
  /** Of a KIND node that is served. */
  readonly nodeReportOf: (fact: ContainerFact) => NodeReport | undefined;
  /** Those that do not run, as far as anybody can tell at the moment. */
  readonly stopped: () => Promise<readonly StoppedContainer[]>;
}

/** What somebody may have done about a container. */
export interface Repairs {
  readonly repair: (id: string) => Promise<RepairReport["outcome"]>;
  /** Throws a Fault where it is no KIND node. */
  readonly setDetached: (fact: ContainerFact, isDetached: boolean) => void;
}

/** Who answers queries now; after another change of settings it may be somebody else. */
export interface ActiveResolver {
  readonly answerer: Pick<Answerer, "explain">;
  readonly forward: Forward;
  /** What is remembered of servers and of their replies; nothing where they are asked as Docker asks them. */
  readonly upstreamState?: {
    readonly forwarder: Pick<AdaptiveForwarder, "ownerOf" | "flush">;
    readonly fleet: Pick<NameserverPool, "find">;
    readonly cache: Pick<ReplyCache, "bytes" | "bytesMax" | "counts" | "size">;
    readonly isCaching: boolean;
    readonly now: () => number;
  };
}

/** The network namespace of a container, as long as it is open. */
export interface OpenNamespace {
  /** A socket to a server from in there. */
  readonly dial: (server: Server, protocol: "udp" | "tcp") => number;
  readonly close: () => void;
}

/** The way into a container. */
export interface ContainerAccess {
  /** Throws a Fault that says why it cannot be opened. */
  readonly open: (fact: ContainerFact) => OpenNamespace;
  /** What its programs read; undefined where that cannot be told. */
  readonly resolvConfOf: (fact: ContainerFact) => ResolvConf | undefined;
}

export interface ControlPorts {
  readonly containers: Containers;
  readonly repairs: Repairs;
  readonly resolver: () => ActiveResolver;
  readonly inside: ContainerAccess;
  /** What containers asked lately, and who reads it. */
  readonly histories: QueryHistories;
  readonly reader: QueryReader;
  readonly status: () => Status;
  readonly reload: () => Promise<ReloadReport>;
}
