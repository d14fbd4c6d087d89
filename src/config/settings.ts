/**
 * Settings of one run, checked and complete: what flags, environment, settings file and defaults came to together.
 */
import type { Behaviour } from "../base/model/behaviour.ts";
import type { QueriesPolicy } from "../base/model/query-record.ts";
import type { KindPolicy } from "../base/model/kind-policy.ts";
import type { MetricsPolicy } from "../base/model/metrics-policy.ts";
import type { LabelPolicy } from "../base/model/label-policy.ts";
import type { RuleBackendSetting } from "../base/model/rule-backend.ts";
import type { RouteRules } from "../base/model/route-rules.ts";
import type { UpstreamPolicy } from "../base/model/upstream-policy.ts";
import type { LogFormat, LogLevel } from "../base/log/log.ts";
import type { SettingOrigins } from "../base/model/setting-origins.ts";
import type { OnlyFilter } from "../base/model/only.ts";

/** What the settings file may say, and reading it again may change. */
export interface Settings {
  readonly behaviour: Behaviour;
  readonly isStrict: boolean;
  readonly upstream: UpstreamPolicy;
  /** Who is asked, beside what Docker would do. */
  readonly routes: RouteRules;
  readonly only: readonly OnlyFilter[];
  /** What labels may say, and whose. */
  readonly labels: LabelPolicy;
  /** Which containers are KIND nodes, and how their pods reach us. */
  readonly kind: KindPolicy;
  /** The host's resolv.conf, in the engine's mount namespace, where it is not in its usual place. */
  readonly resolvConf: string | undefined;
  /** By what rules are to be held. */
  readonly ruleBackend: RuleBackendSetting;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  readonly metrics: MetricsPolicy;
  /** From being told to stop until containers are handed back; answers go on. */
  readonly lameDuckMs: number;
  readonly capabilities: CapabilitySetting;
  readonly keeper: KeeperSetting;
  /** What is kept and told of what containers ask. */
  readonly queries: QueriesPolicy;
  /** Every key of the settings file: what counts, as the file would say it, and who said so. */
  readonly origins: SettingOrigins;
}

export const METRICS_ADDRESS = "127.0.0.1:9511";

/** Whether capabilities that are not needed are given up before anything is done. */
export const CAPABILITY_SETTINGS = ["drop", "keep"] as const;
export type CapabilitySetting = (typeof CAPABILITY_SETTINGS)[number];

/** Whether a second process takes our rules away when this one ends without doing so. */
export const KEEPER_SETTINGS = ["on", "off"] as const;
export type KeeperSetting = (typeof KEEPER_SETTINGS)[number];

export interface RunSettings extends Settings {
  /** -H as it was given. */
  readonly host: string | undefined;
  readonly stateDir: string;
  /** The engine's process, where the socket does not tell it. */
  readonly enginePid: number | undefined;
  readonly isBatching: boolean;
  /** Takes over from the one that serves, if one does. */
  readonly isReplacing: boolean;
  /** The settings file. */
  readonly config: string | undefined;
}

export const DEFAULT_STATE_DIR = "/run/dns11";
