/**
 * Ports: what the control socket needs from the rest of dns11. On a Docker host the roster provides it, inside a KIND node
 * its only container.
 */
import type { Socket } from "node:net";
import type { Attachment } from "../../container/attach/attachment.ts";
import type { ComposeProjectText } from "../../base/model/compose.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import type { Decision } from "../../container/attach/decision.ts";
import type { LookupOrder } from "../../container/watch/nsswitch.ts";
import type { ComposeService } from "../../container/facts/compose.ts";
import type { ContainerFact, NetworkFact } from "../../container/facts/fact.ts";
import type { FormerAddress, FormerName } from "../../container/registry/former-addresses.ts";
import type { NameSources } from "../../container/names/name-sources.ts";
import type { ListedServer, ResolvConf } from "../../container/watch/resolv-conf.ts";
import type { DefaultBridgeSetting } from "../../base/model/name-choices.ts";
import type { Server, View } from "../../base/model/view.ts";
import type { FailuresReport } from "../../api/failures.ts";
import type { HistoryReport } from "../../api/history.ts";
import type { Explanation } from "../../api/names.ts";
import type { ContainerStatus, RepairReport, ReloadReport, Status } from "../../api/status.ts";
import type { Answerer } from "../../query/answer.ts";
import type { Clients } from "../../query/client/clients.ts";
import type { ReplyCache } from "../../query/cache/reply-cache.ts";
import type { AdaptiveForwarder } from "../../query/forward/adaptive.ts";
import type { Cause } from "../../api/causes.ts";
import type { FailureRecord } from "../../base/model/query-record.ts";
import type { FailureTable, FailureTables } from "../../query/failures/failure-table.ts";
import type { QueryHistories } from "../../query/history/query-histories.ts";
import type { Forward } from "../../query/ports.ts";
import type { ForwardingRules } from "../../query/lookup/forwarding-rules.ts";
import type { NameserverPool } from "../../query/upstream/nameserver-pool.ts";
import type { StoppedContainer } from "../causes/known-container.ts";
import type { EventRing } from "../history/history-rings.ts";
import type { QueryReader } from "../history/query-reader.ts";
import type { Refusal } from "../causes/situation.ts";
import type { Holder } from "../server/http.ts";

/** The running containers and their state. */
export interface Containers {
  /** The key is the container ID. */
  readonly facts: ReadonlyMap<string, ContainerFact>;
  readonly decisionOf: (id: string) => Decision | undefined;
  readonly attachmentOf: (id: string) => Attachment | undefined;
  readonly clients: Pick<Clients, "collect" | "of" | "recentOf">;
  readonly viewOf: (fact: ContainerFact) => View;
  /** Whether containers on the default bridge have names. */
  readonly defaultBridge: () => DefaultBridgeSetting;
  /** Addresses that containers have given up lately. */
  readonly formerAddresses: () => readonly FormerAddress[];
  /** Names that running containers had until they were renamed. */
  readonly formerNames: () => readonly FormerName[];
  /** Stopped containers; an answer may be a second old. */
  readonly stopped: () => Promise<readonly StoppedContainer[]>;
  /** The networks of the engine, also those without containers; an answer may be a second old. */
  readonly networks: () => Promise<readonly EngineNetwork[]>;
  /** What no container of this engine has; undefined where no engine is followed. */
  readonly elsewhere: Pick<NameSources, "ownerOf" | "allNames"> | undefined;
  readonly ofFeatures: FeatureFields;
}

/** The fields that features have of what is said of containers. */
interface FeatureFields {
  readonly status: (id: string) => Partial<ContainerStatus>;
  /** The containers of this machine that an answer leads to. */
  readonly explanation: (facts: readonly ContainerFact[]) => Partial<Explanation>;
  /** Why a name fails, if a feature knows. */
  readonly cause: (failed: FailedName) => Cause | undefined;
  /** Whether a feature refuses a name to a container now. */
  readonly refusal: (asked: AskedName) => Refusal | undefined;
}

export interface AskedName {
  readonly name: string;
  readonly type: number;
  /** Whose programs ask. */
  readonly client: ContainerFact;
  /** Whose network namespace they ask from. */
  readonly owner: ContainerFact;
}

/** A name that fails in a container, or is not asked for there, and that no container of this engine has. */
export interface FailedName {
  /** As it is asked for. */
  readonly name: string;
  /** A response code, NODATA or NOT_QUERIED. */
  readonly failure: string;
  /** Whose network namespace the query is from. */
  readonly client: ContainerFact;
  /** It is kept from servers: a zone of dns11's own has it, it is special, or Docker's resolver, which may know it, does not answer. */
  readonly isKept: boolean;
  /** Nothing is forwarded for the client. */
  readonly isRefused: boolean;
  /** The route by which servers were asked in vain: its domain, "." for all names, and where it was configured. */
  readonly route: { readonly domain: string; readonly by: string | undefined } | undefined;
}

/** Where no feature runs. */
export const NO_FEATURE_FIELDS: FeatureFields = {
  status: () => ({}),
  explanation: () => ({}),
  cause: () => undefined,
  refusal: () => undefined,
};

/** A network as the engine lists it. */
export interface EngineNetwork extends NetworkFact {
  readonly subnets: readonly { readonly subnet: string; readonly gateway: string | undefined }[];
}

/** Operations on containers. */
export interface Repairs {
  readonly repair: (id: string) => Promise<RepairReport["outcome"]>;
}

/** The state of upstream servers, and the cache. */
interface ResolverState {
  readonly forwarder: Pick<AdaptiveForwarder, "ownerOf" | "flush">;
  readonly pool: Pick<NameserverPool, "find" | "hostNameservers" | "nameserversOf">;
  readonly cache: Pick<ReplyCache, "bytes" | "bytesMax" | "counts" | "size" | "rows" | "stored">;
  readonly isCaching: boolean;
  /** Counts what the kernel has answered from the cache meanwhile. */
  readonly collect: () => void;
  readonly now: () => number;
}

/** The resolver in use; a reload of the settings may replace it. */
export interface ActiveResolver {
  readonly answerer: Pick<Answerer, "explain">;
  readonly forward: Forward;
  readonly behaviour: Behaviour;
  readonly rules: Pick<ForwardingRules, "forwardingOf">;
  /** undefined without failover. Required, so that the compiler finds a resolver that lacks it. */
  readonly upstreamState: ResolverState | undefined;
}

/** An open network namespace of a container. */
export interface OpenNamespace {
  /** Opens a socket to a server from inside the namespace. */
  readonly dial: (server: Server, protocol: "udp" | "tcp") => number;
  /** The port that such a socket sends from. */
  readonly portOf: (fd: number) => number;
  readonly close: () => void;
}

/** Access to the namespaces and files of a container. */
export interface ContainerAccess {
  /** Throws a Fault if the namespace cannot be opened. */
  readonly open: (fact: ContainerFact) => OpenNamespace;
  /** The resolv.conf of its programs; undefined if it cannot be determined. */
  readonly resolvConfOf: (fact: ContainerFact) => ResolvConf | undefined;
  /** The text of the /etc/hosts that the engine made; undefined if it cannot be read, or another file is mounted over it. */
  readonly hostsOf?: (fact: ContainerFact) => string | undefined;
  /** In which order its programs read /etc/hosts and query; the usual one if that cannot be determined. */
  readonly lookupOrderOf?: (fact: ContainerFact) => LookupOrder;
  /** The nameservers that the host's files list, and where. */
  readonly hostServers?: () => readonly ListedServer[];
  readonly composeFiles?: ComposeFiles;
  /** The TCP ports on which programs of a container listen; undefined if that cannot be read. */
  readonly listeningIn?: (fact: ContainerFact) => readonly Listening[] | undefined;
  /** Whether a container, or the host where there is none, has a route to an address; no packet is sent. */
  readonly hasRoute?: (fact: ContainerFact | undefined, address: string) => boolean;
}

/** An open TCP port. */
export interface Listening {
  readonly port: number;
  /** Only programs of the container itself reach it. */
  readonly isLoopback: boolean;
}

/** What the files of Compose projects say. */
export interface ComposeFiles {
  /** What is known of a project by now; undefined if it has not been read, or cannot be. */
  readonly projectOf: (place: ComposeService) => ComposeProjectText | undefined;
  /** Reads what was not known when it was asked for; false if that is nothing. */
  readonly learn: () => Promise<boolean>;
}

/** What was found out about a failure. */
export interface RecordedCause {
  readonly cause: Cause | null;
  /** A time of the clock of `performance.now`. */
  readonly atMs: number;
}

/** Where the causes of failures are kept. */
export interface CauseMemory {
  readonly of: (table: FailureTable, record: FailureRecord) => RecordedCause | undefined;
  readonly note: (table: FailureTable, record: FailureRecord, cause: Cause | null) => void;
}

export interface ControlPorts {
  /** The process at the other end of a connection to the control socket. */
  readonly holderOf: (socket: Socket) => Holder;
  readonly containers: Containers;
  readonly repairs: Repairs;
  readonly resolver: () => ActiveResolver;
  readonly inside: ContainerAccess;
  /** The query histories of containers. */
  readonly histories: QueryHistories;
  readonly reader: QueryReader;
  /** The failing names of containers. */
  readonly failures: FailureTables;
  /** What features add to the report of failures; `isChosen` chooses containers. */
  readonly failuresOfFeatures: (isChosen: (containerId: string) => boolean) => Partial<FailuresReport>;
  /** Why they failed; without one, by what is known when somebody reads it. */
  readonly recordedCauses?: CauseMemory;
  /** What has happened, and the last minutes as samples. */
  readonly events: EventRing;
  readonly history: { readonly report: () => HistoryReport };
  readonly status: () => Promise<Status>;
  /** Undefined or null without one. */
  readonly settingsFile?: () => string | null;
  readonly reload: () => Promise<ReloadReport>;
}

/**
 * What somebody follows who has named a container: that one, and whoever has the name after it. Compose makes
 * a container anew for each change.
 * `id`: of the container that has the name now. `nameOf` returns the names of running containers.
 */
export function followedContainer(
  nameOrId: string,
  id: string,
  nameOf: (containerId: string) => string | undefined,
): (containerId: string) => boolean {
  return (each) => each === id || nameOf(each) === nameOrId;
}
