/**
 * Status: how a run is and what it does for every running container, as `GET /v1/status` and `GET /ready` tell it, and
 * what can be done about it.
 */
import type { CapabilitySets } from "../base/model/capability-sets.ts";
import type { KeeperReport } from "../base/model/keeper-report.ts";
import type { NodeReport } from "../base/model/node-report.ts";
import type { SettingOrigins } from "../base/model/setting-origins.ts";
import type { RuleBackend } from "../base/model/rule-backend.ts";

export interface ContainerStatus {
  readonly id: string;
  readonly name: string;
  readonly isPaused: boolean;
  readonly networks: readonly string[];
  /** attached and verifying are served by dns11, all others by Docker, if at all. */
  readonly state: "attached" | "verifying" | "opening" | "failed" | "skipped" | "quarantined";
  /** A word for programs and a sentence for people, where it is not attached. */
  readonly code?: string;
  readonly reason?: string;
  readonly warning?: string;
  /** What may keep queries from us, where that is why it failed. */
  readonly culprits?: readonly string[];
  /** Device and inode of the network namespace. */
  readonly namespace?: string;
  readonly ports?: { readonly udp: number; readonly tcp: number };
  readonly since?: string;
  readonly verified?: string;
  /** What it is to its pods, where it is a KIND node that we serve. */
  readonly node?: NodeReport;
  readonly upstreams?: readonly string[];
  /** How often rules of ours that somebody had taken away were put back; not there with owned tables. */
  readonly repairs?: number;
  readonly counters?: Readonly<Record<string, number>>;
}

export interface Status {
  readonly version: string;
  readonly pid: number;
  readonly since: string;
  readonly mode: "strict" | "default";
  /** How the rules are held: owned tables go with the process, the others stay when it is killed. */
  readonly ruleBackend: RuleBackend;
  /** null inside a node, where there is none. */
  readonly engine: {
    readonly id: string;
    readonly version: string;
    readonly address: string;
    readonly isConnected: boolean;
  } | null;
  /** The settings file. */
  readonly config: string | null;
  /** What counts under each key of the settings file, and who said so. */
  readonly settings: SettingOrigins;
  /** Every running container has been looked at, and is served or its refusal known. */
  readonly isReady: boolean;
  readonly memoryBytes: number;
  /** What its threads may do, those that are alike together. */
  readonly capabilities: readonly CapabilitySets[];
  /** Who hands containers back should this process end without doing so. */
  readonly keeper: KeeperReport;
  /** Where metrics are served beside the control socket. */
  readonly metrics: string | null;
  readonly containers: readonly ContainerStatus[];
}

/** What `POST /v1/repair` tells. */
export interface RepairReport {
  readonly name: string;
  /** Its rules were made anew, it was attached anew or for the first time, it cannot be, or nobody wants it served. */
  readonly outcome: "verified" | "attached-anew" | "released" | "failed" | "not-served";
}

/** What `GET /ready` tells. */
export interface LifecycleReport {
  readonly ready: boolean;
  readonly phase: "starting" | "ready" | "stopping";
  /** What is not there yet: sentences. */
  readonly missing: readonly string[];
  readonly attached: number;
  /** Who is not attached although it should be, and why. */
  readonly refused: readonly { readonly container: string; readonly code: string; readonly reason: string }[];
}

/** What `POST /v1/reload` tells. */
export interface ReloadReport {
  readonly config: string;
  /** Each as `KEY: BEFORE -> NOW`. */
  readonly changed: readonly string[];
}
