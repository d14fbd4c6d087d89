/**
 * ContainerSide: the half of a run that knows containers. There are two: one for all containers of an engine, and one
 * for the single KIND node that dns11 runs inside. The rest of a run is the same for both and depends on this interface
 * only.
 */
import type { Status } from "../api/status.ts";
import type { RunSettings } from "../config/settings.ts";
import type { SharedNames } from "../container/names/name-sources.ts";
import type { Journal } from "../container/files/journal.ts";
import type { EventRing } from "../control/history/history-rings.ts";
import type { ControlPorts } from "../control/situation/ports.ts";
import type { ContainerMetrics } from "../metrics/container-metrics.ts";
import type { Running } from "../features/contract.ts";
import type { Latch } from "../base/lib/async.ts";
import type { HeldNamespace, Keep, Refusing } from "../base/model/held-namespace.ts";
import type { Log } from "../base/log/log.ts";
import type { RateLimitedLog } from "../base/log/rate-limited-log.ts";
import type { Platform } from "./platform.ts";
import type { Quarantines } from "./quarantine/quarantines.ts";
import type { QuerySide } from "./query-side.ts";

export interface ContainerSide extends Pick<ControlPorts, "containers" | "repairs" | "inside"> {
  /** null inside a KIND node. */
  readonly engine: Status["engine"];
  /** How long the engine has been silent; undefined if it answers. */
  readonly engineSilentMs: () => Promise<number | undefined>;
  /** Open once every running container is known. */
  readonly synced: Latch;
  /** Every known container is attached and verified, or has been refused. */
  readonly isSettled: boolean;
  /** Every running container could be inspected by now. */
  readonly areAllKnown: boolean;
  /** Time of the last sign of life, on the clock of `performance.now`. */
  readonly lastActivityMs: number;
  /** Prepares other settings while the current ones stay in force; the result puts them into force. */
  prepare(settings: RunSettings, shared?: SharedNames): Promise<() => void>;
  /** Resolves when every container has the names and servers that follow from the settings in force. */
  refreshed(): Promise<void>;
  /** Decides again about every container. */
  refresh(): void;
  /** Attaches containers until `signal`. */
  follow(signal: AbortSignal): Promise<void>;
  /** Starts nothing new and reads no query until `resume`, or until another process serves. */
  pause(): Promise<void>;
  resume(): void;
  /** Leaves everything unchanged for the process that serves now. */
  abandon(): Promise<void>;
  /** Hands every container back to Docker's resolver. */
  stop(): Promise<void>;
}

/** Dependencies of a ContainerSide. */
export interface ContainerSideParts {
  /** Settings at startup. */
  readonly settings: RunSettings;
  readonly log: Log;
  readonly limitedLog: RateLimitedLog;
  readonly platform: Platform;
  readonly querySide: QuerySide;
  readonly features?: readonly Running[];
  /** What features say of containers. */
  readonly ofFeatures?: ControlPorts["containers"]["ofFeatures"];
  /** The names of features. */
  readonly shared?: SharedNames | undefined;
  readonly counts: ContainerMetrics;
  /** Records what happens to containers. */
  readonly events: EventRing;
  /** Gives the keeper copies of the descriptors of a served namespace. */
  readonly hold: Keep | undefined;
  /** What the previous process left for a namespace. */
  readonly inherit: (id: string) => HeldNamespace | undefined;
  readonly disinherit?: (id: string) => void;
  readonly refusing?: Refusing;
  /** Nothing is attached before this resolves. */
  readonly startAfter: Promise<void>;
  /** Changes to undo in KIND nodes. */
  readonly journal: Journal;
  /** Containers that may crash dns11 again. */
  readonly quarantines: Quarantines;
}

/** What a run serves: an engine's containers, or this node. Found before the run takes the instance lock. */
export interface ServeTarget {
  /** One instance serves each id. */
  readonly instanceId: string;
  /** The host name of the engine; empty where it has none. */
  readonly hostName: string;
  /** Whether the group docker may look into the run; the rootless engine of a user is nobody else's business. */
  readonly isShared: boolean;
  openQuarantines(folder: string): Quarantines;
  compose(parts: ContainerSideParts): ContainerSide;
  close(): void;
}

export interface TargetSearch {
  readonly settings: RunSettings;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Called with a sentence that says what is missing. */
  readonly onWait: (what: string) => void;
}

/** Resolves to undefined where the run was stopped before the target was found. */
export type FindServeTarget = (search: TargetSearch) => Promise<ServeTarget | undefined>;
