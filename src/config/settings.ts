/**
 * Settings of one run, validated and complete: flags, environment, settings file and defaults combined.
 */
import type { Behaviour } from "../base/model/behaviour.ts";
import type { MetricsPolicy } from "../base/model/metrics-policy.ts";
import type { DefaultBridgeSetting, NameChoices, LabelPolicy } from "../base/model/name-choices.ts";
import type { QueriesPolicy } from "../base/model/query-record.ts";
import type { RouteRules } from "../base/model/server-text.ts";
import type { SettingOrigins } from "../base/model/setting-origins.ts";
import type { UpstreamPolicy } from "../base/model/upstream-policy.ts";
import type { CoreValues } from "./settings-table.ts";

/** The settings that the settings file can set and a reload can change. */
export interface Settings {
  readonly behaviour: Behaviour;
  readonly isStrict: CoreValues["strict"];
  readonly upstream: UpstreamPolicy;
  /** Configured upstream routes, in addition to Docker's servers. */
  readonly routes: RouteRules;
  /** What health checks mean for shared names. */
  readonly health: CoreValues["health"];
  /** What containers' names are like. */
  readonly names: NameChoices;
  readonly only: CoreValues["only"];
  /** Which labels are honoured. */
  readonly labels: LabelPolicy;
  /** Whose names containers resolve. */
  readonly visible: CoreValues["visible"];
  /** Whether a feature serves containers on the default bridge. */
  readonly defaultBridge: DefaultBridgeSetting;
  /** Whether containers resolve host.docker.internal without an entry of their own. */
  readonly hostName: CoreValues["host-docker-internal"];
  /** The zones with names of services and projects. */
  readonly zones: readonly string[];
  /** The domain of container names on the host, in lower case, without dots at its ends. */
  readonly hostDomain: CoreValues["host-domain"];
  /** The domains of other names that programs on the host may ask for: those of features, and those of nodes. */
  readonly hostZones: readonly string[];
  /** The host's resolv.conf in the engine's mount namespace, if it is not at its usual path. */
  readonly resolvConf: CoreValues["resolv-conf"] | undefined;
  readonly ruleBackend: CoreValues["rule-backend"];
  readonly logLevel: CoreValues["log-level"];
  readonly logFormat: CoreValues["log-format"];
  readonly metrics: MetricsPolicy;
  /** Pages that say whether a container resolves a name. */
  readonly healthProbes: CoreValues["health-probes"];
  /** From the stop signal until containers are handed back; queries are still answered. */
  readonly lameDuckMs: CoreValues["lame-duck"];
  readonly keeper: CoreValues["keeper"];
  /** What the query history and the query log record. */
  readonly queries: QueriesPolicy;
  /** The settings of features, by their keys; a feature reads its own. */
  readonly features: Readonly<Record<string, unknown>>;
  /** Every key of the settings file with its effective value, as written in the file, and its source. */
  readonly origins: SettingOrigins;
}

/** A folder of another program that settings come from. */
export interface NamedFolder {
  readonly path: string;
  /** Differs where it has changed since it was read. */
  readonly fingerprint: string;
}

export interface RunSettings extends Settings {
  readonly folders: readonly NamedFolder[];
  /** The value of -H. */
  readonly host: string | undefined;
  readonly stateDir: string;
  /** The PID of the engine, if it cannot be found through the socket. */
  readonly enginePid: number | undefined;
  /** Whether to take over from a running instance, if there is one. */
  readonly isReplacing: boolean;
  /** The path of the settings file. */
  readonly config: string | undefined;
}
