/**
 * Settings of one run, validated and complete: flags, environment, settings file and defaults combined.
 */
import type { AnswersSetting } from "../base/model/answered-by.ts";
import type { Behaviour } from "../base/model/behaviour.ts";
import type { DeclaredName } from "../base/model/declared-name.ts";
import type { HealthPolicy } from "../base/model/health-policy.ts";
import type { QueriesPolicy } from "../base/model/query-record.ts";
import type {
  DefaultBridgeSetting,
  HostNameSetting,
  NameChoices,
  StoppedPolicy,
  VisibleSetting,
} from "../base/model/name-choices.ts";
import type { KindPolicy, NodeFilter } from "../base/model/kind-policy.ts";
import type { HealthProbe } from "../base/model/health-probe.ts";
import type { MetricsPolicy } from "../base/model/metrics-policy.ts";
import type { LabelPolicy } from "../base/model/label-policy.ts";
import type { RuleBackendSetting } from "../base/model/rule-backend.ts";
import type { RouteRules } from "../base/model/route-rules.ts";
import type { UpstreamPolicy } from "../base/model/upstream-policy.ts";
import type { LogFormat, LogLevel } from "../base/model/log-choices.ts";
import type { SettingOrigins } from "../base/model/setting-origins.ts";
import type { OnlyFilter } from "../base/model/only.ts";
import type { Policy } from "../policy/model/policy.ts";

/** The settings that the settings file can set and a reload can change. */
export interface Settings {
  readonly behaviour: Behaviour;
  readonly isStrict: boolean;
  readonly upstream: UpstreamPolicy;
  /** Configured upstream routes, in addition to Docker's servers. */
  readonly routes: RouteRules;
  /** The names that the settings declare. */
  readonly records: readonly DeclaredName[];
  /** What some containers may resolve and connect to. */
  readonly policies: readonly Policy[];
  /** The folder with files that declare more. */
  readonly recordsDir: string | undefined;
  /** What health checks mean for shared names. */
  readonly health: HealthPolicy;
  /** What the names of containers that are not running mean. */
  readonly stopped: StoppedPolicy;
  /** What containers' names are like. */
  readonly names: NameChoices;
  readonly only: readonly OnlyFilter[];
  /** Which labels are honoured. */
  readonly labels: LabelPolicy;
  /** Whose names containers resolve. */
  readonly visible: VisibleSetting;
  /** Whether containers on the default bridge are served. */
  readonly defaultBridge: DefaultBridgeSetting;
  /** Whether containers resolve host.docker.internal without an entry of their own. */
  readonly hostName: HostNameSetting;
  /** The zones with names of services and projects. */
  readonly zones: readonly string[];
  /** Which containers are KIND nodes, and how their pods reach us. */
  readonly kind: KindPolicy;
  /** Which containers have an engine or a builder inside, whose containers ask dns11. */
  readonly nested: readonly NodeFilter[];
  /** The domain of container names on the host, in lower case, without dots at its ends. */
  readonly hostDomain: string;
  /** The domains of other names that programs on the host may ask for: the zones, those of features, and those of nodes. */
  readonly hostZones: readonly string[];
  /** The host's resolv.conf in the engine's mount namespace, if it is not at its usual path. */
  readonly resolvConf: string | undefined;
  readonly ruleBackend: RuleBackendSetting;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  readonly metrics: MetricsPolicy;
  /** Pages that say whether a container resolves a name. */
  readonly healthProbes: readonly HealthProbe[];
  /** From the stop signal until containers are handed back; queries are still answered. */
  readonly lameDuckMs: number;
  readonly keeper: KeeperSetting;
  /** Who answers plain queries for local names. */
  readonly answers: AnswersSetting;
  /** What the query history and the query log record. */
  readonly queries: QueriesPolicy;
  /** The settings of features, by their keys; a feature reads its own. */
  readonly features: Readonly<Record<string, unknown>>;
  /** Every key of the settings file with its effective value, as written in the file, and its source. */
  readonly origins: SettingOrigins;
}

export const METRICS_ADDRESS = "127.0.0.1:9511";
export const HOST_DOMAIN_DEFAULT = "docker";

/**
 * How upstream servers are queried. `rotate` is `adaptive` from another server each time; `docker` is what strict mode does: as
 * Docker's resolver, without a cache and everything else that is said of the others.
 */
export const FORWARD_ORDERS = ["adaptive", "rotate", "sequential", "parallel", "docker"] as const;

/** Whether a second process removes our rules if this one ends without doing so. */
export const KEEPER_SETTINGS = ["on", "off"] as const;
type KeeperSetting = (typeof KEEPER_SETTINGS)[number];

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
