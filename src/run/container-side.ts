/**
 * ContainerWay: the container's way of a run. There are two: that of all containers of an engine, and that of the one KIND
 * node that dns11 is inside. Everything else of a run is the same for both, and knows only this.
 */
import type { Status } from "../api/status.ts";
import type { RunSettings } from "../config/settings.ts";
import type { Journal } from "../container/kind/journal.ts";
import type { ControlPorts } from "../control/ports.ts";
import type { ContainerMetrics } from "../metrics/container-metrics.ts";
import type { HeldNamespace, Keep } from "../base/model/held-namespace.ts";
import type { Log } from "../base/log/log.ts";
import type { RateLimitedLog } from "../base/log/rate-limited-log.ts";
import type { Platform } from "./platform.ts";
import type { Quarantines } from "./quarantine/quarantines.ts";
import type { QuerySide } from "./query-side.ts";

export interface ContainerSide extends Pick<ControlPorts, "containers" | "repairs" | "inside"> {
  /** null where there is none. */
  readonly engine: Status["engine"];
  /** Every container that runs is known. */
  readonly isSynced: boolean;
  /** Whoever is known was attached and verified, or its refusal is known. */
  readonly isSettled: boolean;
  /** When it was last seen to be alive, on the clock of `performance.now`. */
  readonly lastSignMs: number;
  /** Goes by other settings from now on. */
  reconfigure(settings: RunSettings): void;
  /** Decides anew about every container. */
  refresh(): void;
  /** Attaches what is to be attached until `signal`. */
  follow(signal: AbortSignal): Promise<void>;
  /** Begins nothing any more and reads no query, until somebody else serves, or `goOn`. */
  standStill(): Promise<void>;
  goOn(): void;
  /** Leaves everything to who serves now, as it is. */
  abandon(): Promise<void>;
  /** Hands everything back to Docker's resolver. */
  stop(): Promise<void>;
}

/** What a container's way is made from. */
export interface ContainerSideParts {
  /** Those of the start. */
  readonly settings: RunSettings;
  readonly log: Log;
  readonly repeats: RateLimitedLog;
  readonly ground: Platform;
  readonly querySide: QuerySide;
  readonly counts: ContainerMetrics;
  /** Who holds copies of what namespaces are served by. */
  readonly keep: Keep | undefined;
  /** What a run before left to this one. */
  readonly heir: (id: string) => HeldNamespace | undefined;
  /** Nothing is attached before this. */
  readonly begins: Promise<void>;
  /** What is to be undone in KIND nodes. */
  readonly journal: Journal;
  /** Which containers may end dns11 again. */
  readonly quarantines: Quarantines;
}

/** Whom a run is to serve, found before it takes the instance's lock. */
export interface ServeTarget {
  /** One instance serves what is called like this. */
  readonly instanceId: string;
  openQuarantines(folder: string): Quarantines;
  compose(parts: ContainerSideParts): ContainerSide;
  close(): void;
}

export interface TargetSearch {
  readonly settings: RunSettings;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Told what is not there yet, as a sentence. */
  readonly onWait: (what: string) => void;
}

/** undefined where it was told to stop before anything was found. */
export type FindServeTarget = (search: TargetSearch) => Promise<ServeTarget | undefined>;
