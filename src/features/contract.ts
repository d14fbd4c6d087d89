import type { FailuresReport } from "../api/failures.ts";
import type { Explanation } from "../api/names.ts";
import type { ContainerStatus, Status } from "../api/status.ts";
import type { Log } from "../base/log/log.ts";
import type { ReportEvent } from "../base/model/event.ts";
import type { Finding } from "../base/model/finding.ts";
import type { Settings } from "../config/settings.ts";
import type { ContainerFact, NetworkFact } from "../container/facts/fact.ts";
import type { ContainerLinks } from "../container/links/container-links.ts";
import type { NameSource } from "../container/names/source/name-source.ts";
import type { OtherMachines } from "../container/names/zone/member.ts";
import type { EngineHost } from "../container/namespace/engine-host.ts";
import type { NamespaceRunner } from "../container/namespace/namespace-runner.ts";
import type { QueryReader } from "../control/history/query-reader.ts";
import type { Routes } from "../control/server/http.ts";
import type { ControlPorts } from "../control/situation/ports.ts";
import type { KernelAnswers } from "../kernel/answers/kernel-answers.ts";
import type { NetlinkMemory } from "../kernel/netlink-socket.ts";
import type { Family } from "../metrics/exposition.ts";
import type { QueryObserver } from "../query/client/clients.ts";
import type { FeatureEntry } from "../config/feature-entry.ts";

/**
 * A feature as `src/features.ts` lists it: what is known of it without its code, and how that is loaded. All parts are optional.
 * `Program` is what the command line is made of.
 */
export interface Feature<Program = never> extends FeatureEntry {
  /** By the word that is typed. */
  readonly commands?: Readonly<Record<string, FeatureCommand<Program>>>;
  /** What commands say of it, in which no feature runs. */
  readonly report?: () => Promise<FeatureReport>;
  readonly load?: () => Promise<FeatureCode>;
}

interface FeatureCommand<Program> {
  /** The heading of the help that it stands below. */
  readonly group: string;
  readonly load: () => Promise<{ readonly add: (program: Program) => void }>;
}

export interface FeatureReport {
  /** Lines of `dns11 status`. */
  readonly statusLines: (status: Status) => readonly StatusLine[];
  /** What `dns11 doctor` says of the machine. */
  readonly findings: (status: Status) => readonly Finding[];
  /** What it says of a container. */
  readonly containerFindings?: (container: ContainerStatus) => readonly Finding[];
  /** Columns of `dns11 ps` for these containers. */
  readonly columns?: (containers: readonly ContainerStatus[]) => readonly ContainerColumn[];
  /** Lines of `dns11 explain`; those that are only details come with `-v`. */
  readonly explanationLines?: (explanation: Explanation, isVerbose: boolean) => readonly StatusLine[];
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
export interface Running {
  /** The run is one for the containers of an engine. Inside of a KIND node this is not called. */
  engine?(engine: EngineCore): void;
  /** A source of names, as the settings in force want it; it outlives a reload where they stay the same. */
  readonly names?: NameSource | undefined;
  /** What other machines have in the service zones, in the same way; of several features the first one's counts. */
  readonly machines?: OtherMachines | undefined;
  /** Serving begins. A Fault ends the run. */
  start?(): Promise<void> | void;
  /** No other process serves any more: one that was taken over from has stopped. */
  serving?(): void;
  /** Other settings: what takes long or can fail, while those before are in force. */
  prepare?(settings: Settings): Promise<Prepared>;
  /** They are in force, in the same step as everywhere. It cannot fail. */
  configure?(settings: Settings): void;
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
  /** Requests that it answers at the control socket. */
  routes?(ports: ControlPorts): Routes;
  /** Its fields of the status. */
  status?(): Partial<Status>;
  /** Its fields of a container in the status. */
  container?(containerId: string): Partial<ContainerStatus>;
  /** Its fields of an explanation, about the containers of this machine that an answer leads to. */
  explained?(containers: readonly ContainerFact[]): Partial<Explanation>;
  /** Its fields of the report of failures; `isMeant` chooses containers. */
  failures?(isMeant: (containerId: string) => boolean): Partial<FailuresReport>;
  metrics?(): readonly Family[];
  /** The run ends, or another process serves. It goes on while containers are handed back, and `close` waits for it. */
  closing?(isHandedOver: boolean): Promise<void> | void;
  /** The run has ended: containers are handed back, or served by another process. */
  close?(): Promise<void> | void;
}

export interface Prepared {
  readonly names?: NameSource | undefined;
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
  /** The last queries of all containers. */
  readonly reader: QueryReader;
  /** Logs what happens. */
  readonly onEvent: ReportEvent;
  /** Undefined where the process answers every query. */
  readonly kernelAnswers: KernelAnswers | undefined;
  /** Called in the step in which names have changed: no answer that was given before is valid any more. */
  readonly onNames: () => void;
  /** Shows every client before its first query, whose judge it may be; and has answers to it noted. */
  readonly observe: (observer: QueryObserver) => void;
}

/** What a run for the containers of an engine has. */
export interface EngineCore {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  /** The machine of the engine, as it is now. */
  readonly host: () => EngineHost;
  /** The containers that run, by ID. */
  readonly containers: () => ReadonlyMap<string, ContainerFact>;
  /** Undefined for one that is not known. */
  readonly network: (id: string) => NetworkFact | undefined;
  /** Each container's links on the engine's host. */
  readonly links: ContainerLinks;
  /** Somebody chooses containers by this label: resolves when it is known of all. */
  readonly learnLabel: (key: string) => Promise<void>;
}
