import type { Cause } from "../api/causes.ts";
import type { ControlClient } from "../api/control-client.ts";
import type { FailuresReport } from "../api/failures.ts";
import type { AddressOwner, Explanation } from "../api/names.ts";
import type { ContainerStatus, Status } from "../api/status.ts";
import type { Fault } from "../base/lib/fault.ts";
import type { Log, ReportEvent } from "../base/log/log.ts";
import type { RateLimitedLog } from "../base/log/rate-limited-log.ts";
import type { Checks, Finding } from "../base/model/finding.ts";
import type { HeldNamespace, Keep } from "../base/model/held-namespace.ts";
import type { LabelPolicy } from "../base/model/name-choices.ts";
import type { NodeReport } from "../base/model/node-report.ts";
import type { RuleBackendChoice } from "../base/model/rule-backend.ts";
import type { Server, View } from "../base/model/view.ts";
import type { Settings } from "../config/settings.ts";
import type { AttachMode, Attaching } from "../container/attach/attach-mode.ts";
import type { Decision } from "../container/attach/decision.ts";
import type { NamespaceExtra } from "../container/attach/namespace-extra.ts";
import type { Reconciler } from "../container/attach/reconciler.ts";
import type { ContainerFact, NetworkFact } from "../container/facts/fact.ts";
import type { Labels } from "../container/facts/labels.ts";
import type { OpenSharedEndpoint, OpenSubnetEndpoint } from "../container/host-address/endpoints.ts";
import type { Journal } from "../container/files/journal.ts";
import type { SearchList } from "../container/files/resolv-conf-text.ts";
import type { ContainerLinks } from "../container/links/container-links.ts";
import type { NameContext, PlacedNames } from "../container/names/name-sources.ts";
import type { NodeContext } from "../container/names/source/name-source.ts";
import type { OtherMachines } from "../container/names/services/member.ts";
import type { EngineHost } from "../container/namespace/engine-host.ts";
import type { NamespaceRunner } from "../container/namespace/namespace-runner.ts";
import type { NamespaceClaim, ProvenNamespace } from "../container/namespace/proof.ts";
import type { Directory } from "../container/registry/directory.ts";
import type { RouteLayer } from "../container/registry/routes.ts";
import type { Roster } from "../container/roster.ts";
import type { SourcePorts } from "../container/rules/exchange.ts";
import type { Engine } from "../container/watch/engine.ts";
import type { HostUpstreams } from "../container/watch/host-upstreams.ts";
import type { LateHooks } from "../container/watch/late-containers.ts";
import type { ResolvConf } from "../container/watch/resolv-conf.ts";
import type { Refusal } from "../control/causes/situation.ts";
import type { QueryReader } from "../control/history/query-reader.ts";
import type { Routes } from "../control/server/http.ts";
import type { AskedName, ControlPorts, FailedName } from "../control/situation/ports.ts";
import type { Within } from "../kernel/net-namespace.ts";
import type { SystemCall } from "../kernel/system-calls.ts";
import type { NetlinkMemory } from "../kernel/netlink-socket.ts";
import type { Family } from "../metrics/exposition.ts";
import type { QueryObserver } from "../query/client/clients.ts";
import type { RepeatedCounts } from "../query/record/meter.ts";
import type { FeatureEntry } from "../config/feature-entry.ts";

/**
 * A feature as `src/features.ts` lists it: what is known of it without its code, and how that is loaded. All parts are optional.
 * `Program` is what the command line is made of.
 */
export interface Feature<Program = never> extends FeatureEntry {
  readonly commands?: Readonly<Record<string, FeatureCommand<Program>>>;
  /** What commands say of it, in which no feature runs. */
  readonly report?: () => Promise<FeatureReport>;
  /** What a killed run may have left, which `dns11 cleanup` removes. */
  readonly cleanup?: () => Promise<FeatureCleanup>;
  readonly load?: () => Promise<FeatureCode>;
  /** A run inside of a node of a cluster, without an engine; of several features the first one's counts. */
  readonly inNode?: () => Promise<InNode>;
}

interface FeatureCommand<Program> {
  /** The heading of the help that it stands below. */
  readonly group: string;
  readonly load: () => Promise<{ readonly add: (program: Program) => void }>;
}

export interface FeatureReport {
  /** The checks of `dns11 doctor` that only it makes. */
  readonly checks?: Checks;
  /** Lines of `dns11 status`. */
  readonly statusLines?: (status: Status) => readonly StatusLine[];
  /** Lines of `dns11 status CONTAINER`. */
  readonly containerLines?: (container: ContainerStatus) => readonly StatusLine[];
  /** What `dns11 doctor` says of the machine. */
  readonly findings?: (machine: CheckedMachine) => readonly Finding[];
  /** What is wrong in files that these settings name, a line each. */
  readonly fileMistakes?: (settings: Settings) => Promise<readonly string[]>;
  /** What it says of names and rules in a container, in place of the usual checks; undefined where these are right. */
  readonly ownChecks?: (
    container: CheckedContainer,
    machine: CheckedMachine,
  ) => Promise<readonly Finding[]> | undefined;
  /** What it says of a container. */
  readonly containerFindings?: (
    container: CheckedContainer,
    machine: CheckedMachine,
  ) => readonly Finding[] | Promise<readonly Finding[]>;
  /** What it says of all containers that run, together. */
  readonly containersFindings?: (all: CheckedContainers, machine: CheckedMachine) => Promise<readonly Finding[]>;
  /** What `dns11 ps` says of a container that is served, beside what is wrong. */
  readonly remark?: (container: ContainerStatus) => string | undefined;
  /** Columns of `dns11 ps` for these containers. */
  readonly columns?: (containers: readonly ContainerStatus[]) => readonly ContainerColumn[];
  /** What is shown of who has an address, where that is no container of this engine. */
  readonly ownerText?: (owner: AddressOwner) => string | undefined;
  /** Lines of `dns11 explain`; those that are only details come with `-v`. */
  readonly explanationLines?: (explanation: Explanation, isVerbose: boolean) => readonly StatusLine[];
}

export interface CheckedMachine {
  /** Undefined where no dns11 runs. */
  readonly status: Status | undefined;
  /** Asks it. */
  readonly client: ControlClient;
  /** The servers that Docker's own settings give every container; undefined if they are not known. */
  readonly daemonDns: readonly string[] | undefined;
  /** Reads a file of the engine's host by its path; undefined without one. */
  readonly readHostFile: (path: string) => string | undefined;
}

export interface CheckedContainers {
  readonly facts: readonly ContainerFact[];
  readonly networkOf: (id: string) => NetworkFact | undefined;
  /** Reads from the engine. */
  readonly api: EngineCore["api"];
  /** The ids of those that are checked one by one; undefined where somebody has asked about some only. */
  readonly checked: ReadonlySet<string> | undefined;
  /** Whether one of the servers of the engine's host knows a domain. */
  readonly isKnownDomain: (domain: string) => Promise<boolean>;
  /** Whether a TCP port of another machine can be reached from the engine's host. */
  readonly isReached: (address: string, port: number) => Promise<boolean>;
}

export interface CheckedContainer {
  readonly fact: ContainerFact;
  /** Undefined where no dns11 runs, or where it does not know the container yet. */
  readonly status: ContainerStatus | undefined;
  /** Undefined where its network namespace cannot be entered. */
  readonly inside: InsideContainer | undefined;
  readonly networkOf: (id: string) => NetworkFact | undefined;
}

export interface InsideContainer extends Pick<EngineCore, "runner" | "memory"> {
  /** Its network namespace. */
  readonly fd: number;
  /** Does something in its network namespace. */
  readonly within: Within;
  /** Announces test queries to a running dns11, so that they do not count as the container's. */
  readonly announce: (ports: SourcePorts) => Promise<void>;
}

/** A column of a table of containers. */
export interface ContainerColumn {
  readonly title: string;
  readonly isForWide?: boolean;
  /** It may be dropped; the highest number is dropped first. */
  readonly drop: number;
  /** Its cells may be wrapped to this width. */
  readonly min: number;
  readonly cell: (
    container: ContainerStatus,
  ) => string | { readonly text: string; readonly colour?: StatusLine["colour"] | "dim" };
}

/** Both return what was done, in words. */
export interface FeatureCleanup {
  /** What outlives a killed run on purpose, before anything else is removed: where it is not to go, a Fault says what there is. */
  removeHeld?(machine: CleanedMachine, isToGo: boolean): Promise<readonly string[]>;
  cleanUp?(machine: CleanedMachine): readonly string[];
}

export interface CleanedMachine extends Pick<EngineCore, "runner" | "memory" | "host"> {
  /** The name of a running container whose id begins like this. */
  readonly nameOf: (idStart: string) => string | undefined;
}

export interface StatusLine {
  readonly label: string;
  readonly text: string;
  readonly colour?: "yellow" | "red" | undefined;
}

/** The code of a feature in a run. */
export interface FeatureCode {
  /** A run is composed, but has not begun: nobody outside may notice yet. */
  open(run: RunCore): Running;
}

/** A feature while a run lasts, in the order in which its parts are called. */
export interface Running extends ForContainers {
  /**
   * The run is one for the containers of an engine. Inside of a KIND node this is not called, and in a preview of a run it is the last
   * that is called before `stop`, and before containers are decided about.
   */
  engine?(engine: EngineCore): void;
  /**
   * A source of names, as the settings in force want it, at its place in the order of all; it outlives a reload where they stay the same.
   * It learns of no containers, and has names inside of a KIND node, too.
   */
  readonly names?: PlacedNames | undefined;
  /** Servers for domains, where neither the settings nor labels name any: when they change, `updateViews` is to be called. */
  readonly domainServers?: RouteLayer | undefined;
  /** What other machines have in the service zones, in the same way; of several features the first one's counts. */
  readonly machines?: OtherMachines | undefined;
  /** A namespace of its own, which it has the reconciler of its EngineCore serve. Undefined where there is none. */
  readonly namespace?: OwnNamespace | undefined;
  /** What is in served namespaces besides sockets and rules; of several features the first one's counts. */
  readonly extra?: NamespaceExtra | undefined;
  /** Serving begins. A Fault ends the run. */
  start?(): Promise<void> | void;
  /** No other process serves any more: one that was taken over from has stopped. */
  serving?(): void;
  /** Other settings: what takes long or can fail, while those before are in force. */
  prepare?(settings: Settings): Promise<Prepared>;
  /** They are in force, in the same step as everywhere. It cannot fail. */
  configure?(settings: Settings): void;
  /** Names have changed, or what clients are answered otherwise: no answer that was given before is valid any more. */
  answersEnd?(): void;
  /** The keeper holds what is needed in namespaces that were inherited: what the previous process has left there may be replaced. */
  inheritedHeld?(): Promise<void> | void;
  /** In this step something changes about a container, also one that starts: what is chosen by containers is to be chosen again. */
  containersChange?(): void;
  /** A container runs, or something has changed about it. */
  put?(fact: ContainerFact): void;
  /** It has ended. */
  remove?(containerId: string): void;
  /** Every container that runs is known; `put` was called for each. */
  synced?(): void;
  /** The connection to the engine is a new one: its process and its host may be others. */
  engineConnected?(): void;
  /** The engine's host asks other servers. */
  hostServersChanged?(): void;
  /** Requests that it answers at the control socket. */
  routes?(ports: ControlPorts): Routes;
  /** Its fields of the status. */
  status?(): Partial<Status>;
  /** Its fields of a container in the status. */
  container?(containerId: string): Partial<ContainerStatus>;
  /** Its fields of an explanation, about the containers of this machine that an answer leads to. */
  explained?(containers: readonly ContainerFact[]): Partial<Explanation>;
  /** Why a name fails, where it knows more than the servers say. */
  causeOf?(failed: FailedName): Cause | undefined;
  /** Whether it refuses a name to a container now, by a judgement that is also one about queries; then this is why the name fails. */
  refusalOf?(asked: AskedName): Refusal | undefined;
  /** Its fields of the report of failures; `isChosen` chooses containers. */
  failures?(isChosen: (containerId: string) => boolean): Partial<FailuresReport>;
  metrics?(): readonly Family[];
  /** The run ends, or another process serves. It goes on while containers are handed back, and `close` waits for it. */
  closing?(isHandedOver: boolean): Promise<void> | void;
  /** The run has ended: containers are handed back, or served by another process. */
  close?(): Promise<void> | void;
}

/**
 * What a feature can do in a run for the containers of an engine: attach them in another way, answer others, or at other addresses.
 * Inside of a KIND node none of it is called.
 */
interface ForContainers {
  /**
   * Makes a source of names for these settings, or several, the first time before `engine`. Each has its place in the order of all, and
   * learns of containers and networks as they do. Each reload makes as many, which succeed them.
   */
  makeNames?(settings: Settings, context: NameContext): PlacedNames | readonly PlacedNames[];
  /** What is wrong with the labels of a container that it reads; `labels` are those that count by this policy. */
  labelWarnings?(fact: ContainerFact, labels: Labels, policy: LabelPolicy): readonly (string | undefined)[];
  /** Who asks and is no container, but is shown as one. */
  readonly outsiders?: Outsiders | undefined;
  /**
   * Another decision about a container than this one, for a reason of its own, or with another reason. It is not in force yet, and the
   * features that come later see it.
   */
  decide?(fact: ContainerFact, decision: Decision): Decision | undefined;
  /** What is different for a container through which others ask dns11, too; undefined for any other. */
  nodeContextOf?(fact: ContainerFact): NodeContext | undefined;
  /** It has been decided what a container sees, and whether it is served. */
  decided?(containerId: string): void;
  /** What anybody sees may have changed: names, networks, servers, or who is quarantined. Containers are decided about one by one. */
  viewsChanged?(): void;
  /** How a container is attached about which this is decided, where that is not by `mode`, and what to warn of. */
  attach?(fact: ContainerFact, decision: Decision, mode: AttachMode | undefined): Attaching | undefined;
  /**
   * Whether it changes files of this container, or will once it has started: what a run before has changed there is to stay, and it is
   * not served before its first instruction.
   */
  changesFiles?(fact: ContainerFact): boolean;
  /** The search list that a container asks for, for a feature that writes its resolv.conf in another way. */
  searchListOf?(fact: ContainerFact): SearchList | undefined;
  /** What holds containers to what they may ask and reach, from `engine` on; of several features the first one's counts. */
  readonly policing?: Policing | undefined;
  /** Whether all that it serves is served, or it is known why not. */
  readonly isSettled?: boolean;
  /** Reads no more queries until `resume`, or until another process serves. Containers are served meanwhile, and paused after it. */
  pause?(): Promise<void>;
  resume?(): void;
  /**
   * Containers have been handed back: Docker's resolver may go on forwarding here, so this comes last. Or another process serves them, to
   * which everything is left.
   */
  stop?(isHandedOver: boolean): Promise<void>;
}

/** Docker's resolver may not answer whom it holds, whatever becomes of this process. */
export interface Policing {
  /** Whether there is anything to hold anybody to: then no container is served before it is known. */
  readonly isOn: boolean;
  /** Whether nobody else may answer a container, which is served or not. */
  isEnforced(containerId: string): boolean;
  /** The same of one that is served, which costs nothing. */
  isEnforcedNow(containerId: string): boolean;
  /** Learns of containers that the engine does not describe. */
  readonly late: LateHooks;
  /** A network of the engine was made or removed. */
  networksChanged(): void;
  /** The last that is called: whatever was asked has its answer. */
  close(): void;
}

export interface Outsiders {
  readonly facts: readonly ContainerFact[];
  /** Undefined for the id of a container. */
  decisionOf(id: string): Decision | undefined;
  /** Undefined for the id of a container, and where it is that of `facts` as for a container. */
  viewOf?(id: string): View | undefined;
  /** Why nothing can be asked from where they are; undefined for the id of a container. */
  unreachable?(id: string): Fault | undefined;
}

/**
 * A namespace that is no container's. The reconciler knows it by the ID of its fact, which a claim has as the ID of the container. While
 * it is on, rules may redirect what is sent from the engine's host.
 */
export interface OwnNamespace {
  /** It, wherever containers can be named. */
  readonly fact: ContainerFact;
  /** Whether it is listed as one of them. */
  readonly isOn: boolean;
  readonly decision: Decision;
  readonly view: View;
  /** What the log says where it could not be attached. */
  readonly unserved: string;
  /** The caller closes it. Throws a Fault where it is not the claimed one any more. */
  open(claim?: NamespaceClaim): ProvenNamespace;
  /** Which servers its programs ask. */
  resolvConf(): ResolvConf;
}

export interface Prepared {
  readonly names?: PlacedNames | undefined;
  readonly machines?: OtherMachines | undefined;
  /** In the step in which the settings are in force. */
  commit(): void;
  /** They will not be. */
  discard(): Promise<void>;
}

/** What any run has. */
export interface RunCore {
  /** At the start. */
  readonly settings: Settings;
  /** No other run serves what this ID stands for: an engine, or a node. */
  readonly instanceId: string;
  /** The engine's host name; empty where it has none. */
  readonly hostName: string;
  readonly log: Log;
  /** For what may happen again and again. */
  readonly limitedLog: RateLimitedLog;
  /** The last queries of all containers. */
  readonly reader: QueryReader;
  /** Logs what happens. */
  readonly onEvent: ReportEvent;
  /** Those that are known, by their ids: while a run is composed, none. */
  readonly containers: () => ReadonlyMap<string, ContainerFact>;
  /** Whether the keeper can refuse queries when this process has ended. */
  readonly canRefuse: () => boolean;
  /** Its own folder, for what outlives it. */
  readonly folder: string;
  /** Called in the step in which names have changed: no answer that was given before is valid any more. */
  readonly onNames: () => void;
  /** All views are to be made again. */
  readonly updateViews: () => void;
  /** Has answers counted that are given without the process. */
  readonly countRepeated: (counts: RepeatedCounts) => void;
  /** Has the kernel refuse system calls of its entry that it does not make after all. */
  readonly denyCalls: (calls: readonly SystemCall[]) => void;
  /** Shows every client before its first query, whose judge or tap it may be; and has answers to it noted. */
  readonly observe: (observer: QueryObserver) => void;
}

/** What a run for the containers of an engine has. */
export interface EngineCore extends Pick<RunCore, "updateViews"> {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly ruleBackend: RuleBackendChoice;
  /** The engine's host is a namespace of a user's own. */
  readonly isRootless: boolean;
  /** The machine of the engine, as it is now. */
  readonly host: () => EngineHost;
  /** Its nameservers, and its resolv.conf. */
  readonly hostServers: () => Pick<HostUpstreams, "servers" | "resolvConf">;
  /** Reads from the engine. */
  readonly api: Pick<Engine, "network" | "readOne" | "readList">;
  /** Its major version, as it is now. */
  readonly engineVersion: () => number;
  /** All networks of the engine, also those without containers. */
  readonly listNetworks: () => Promise<readonly NetworkFact[]>;
  /** Reads a container from the engine again. */
  readonly reinspect: (containerId: string) => void;
  /** Each container's links on the engine's host. */
  readonly links: ContainerLinks;
  /** Somebody chooses containers by this label: resolves when it is known of all. */
  readonly learnLabel: (key: string) => Promise<void>;
  /** The containers that run, their networks, and names by the settings in force: a reload makes another one. */
  readonly directory: () => Directory;
  /** Whether every running container could be inspected by now. */
  readonly areAllKnown: () => boolean;
  /** Serves a container as far as it is known. */
  readonly serve: (fact: ContainerFact) => void;
  /** A network that may have no container. */
  readonly putNetwork: (fact: NetworkFact) => void;
  /** What is decided about each container. */
  readonly roster: () => Pick<Roster, "decide" | "decisionOf" | "viewOf" | "refresh">;
  /** Serves the feature's own namespace; while a run is composed there is none yet. */
  readonly reconciler: () => Pick<Reconciler, "setDesired" | "clearDesired" | "updateCapture" | "renewPolicies">;
  /** Why dns11 is not to answer whoever has this id: their queries have crashed it. */
  readonly quarantineOf: (id: string) => string | undefined;
  /** Changes of containers' files, which are to be undone. */
  readonly journal: Journal;
  /** The search list that a container asks for. */
  readonly searchListOf: (fact: ContainerFact) => SearchList | undefined;
  /** Opens a socket on the engine's host to a server. */
  readonly dialFromHost: (server: Server, type: "udp" | "tcp") => number;
  readonly openSharedEndpoint: OpenSharedEndpoint;
  readonly openSubnetEndpoint: OpenSubnetEndpoint;
  /** Gives the keeper copies of descriptors. */
  readonly keep: Keep | undefined;
  /** What the previous process left with the keeper. */
  readonly inherit: (id: string) => HeldNamespace | undefined;
  /** Nobody is served before this resolves: by then every running container is known. */
  readonly startAfter: Promise<void>;
}

/** What a feature does inside of the node of a cluster that dns11 itself runs in. */
export interface InNode {
  /** What a run serves there. */
  open(settings: Settings, core: NodeCore): OwnNode;
  /** Leaves rules there that need no process. Returns what was done, and whether the node is served now. */
  serveOnce(
    settings: Settings,
    core: Omit<NodeCore, "onChange">,
  ): Promise<{ readonly lines: readonly string[]; readonly isServed: boolean }>;
  /** Undoes that, or what a killed run has left. Returns what was done. */
  undo(core: Pick<NodeCore, "runner" | "memory" | "journal">): Promise<readonly string[]>;
  /** What is wrong there, whoever serves it. */
  diagnose(): Promise<readonly Finding[]>;
}

export interface NodeCore extends Pick<EngineCore, "runner" | "memory" | "journal"> {
  readonly onEvent: ReportEvent;
  /** The captured addresses may have changed. */
  readonly onChange: () => void;
}

export interface OwnNode {
  readonly fact: ContainerFact;
  /** It stays the same object unless other sockets are needed. */
  readonly mode: AttachMode;
  readonly context: NodeContext;
  report(): NodeReport;
  resolvConf(): ResolvConf;
  /** Reads its addresses again. Returns whether others are to be captured, or in another way. */
  reread(): boolean;
  /** Makes what may fail with other settings; the result puts them into force. */
  prepare(settings: Settings): () => void;
}
