import type { Status } from "../api/status.ts";
import type { Log } from "../base/log/log.ts";
import type { ReportEvent } from "../base/model/event.ts";
import type { Finding } from "../base/model/finding.ts";
import type { Settings } from "../config/settings.ts";
import type { ContainerFact } from "../container/facts/fact.ts";
import type { ContainerLinks } from "../container/links/container-links.ts";
import type { NameSource } from "../container/names/source/name-source.ts";
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
  /** What `dns11 status` and `dns11 doctor` say, in which no feature runs. */
  readonly report?: () => Promise<FeatureReport>;
  readonly load?: () => Promise<FeatureCode>;
}

interface FeatureCommand<Program> {
  /** The heading of the help that it stands below. */
  readonly group: string;
  readonly load: () => Promise<{ readonly add: (program: Program) => void }>;
}

export interface FeatureReport {
  readonly statusLines: (status: Status) => readonly StatusLine[];
  readonly findings: (status: Status) => readonly Finding[];
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
  /** Serving begins. */
  start?(): void;
  /** Other settings: what takes long or can fail, while those before are in force. */
  prepare?(settings: Settings): Promise<Prepared>;
  /** They are in force, in the same step as everywhere. It cannot fail. */
  configure?(settings: Settings): void;
  /** A container runs, or something has changed about it. */
  put?(fact: ContainerFact): void;
  /** It has ended. */
  remove?(containerId: string): void;
  /** The connection to the engine is a new one: its process and its host may be others. */
  engineConnected?(): void;
  /** Requests that it answers at the control socket. */
  routes?(ports: ControlPorts): Routes;
  /** Its fields of the status. */
  status?(): Partial<Status>;
  metrics?(): readonly Family[];
  /** The run has ended: containers are handed back, or served by another process. */
  close?(): Promise<void> | void;
}

export interface Prepared {
  readonly names: NameSource | undefined;
  /** In the step in which the settings are in force. */
  commit(): void;
  /** They will not be. */
  discard(): Promise<void>;
}

/** What any run has. */
export interface RunCore {
  /** At the start. */
  readonly settings: Settings;
  readonly log: Log;
  /** The last queries of all containers. */
  readonly reader: QueryReader;
  /** Logs what happens. */
  readonly onEvent: ReportEvent;
  /** Undefined where the process answers every query. */
  readonly kernelAnswers: KernelAnswers | undefined;
  /** Called in the step in which names have changed: no answer that was given before is valid any more. */
  readonly onNames: () => void;
  /** Has every answer to a client noted. */
  readonly observe: (observer: QueryObserver) => void;
}

/** What a run for the containers of an engine has. */
interface EngineCore {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  /** The machine of the engine, as it is now. */
  readonly host: () => EngineHost;
  /** The containers that run, by ID. */
  readonly containers: () => ReadonlyMap<string, ContainerFact>;
  /** Each container's links on the engine's host. */
  readonly links: ContainerLinks;
}
