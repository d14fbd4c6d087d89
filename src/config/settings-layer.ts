/**
 * SettingsLayer: the settings from one source (flags, environment or settings file), by the keys of the settings file. A
 * missing key is not set.
 */
import type { AnswersSetting } from "../base/model/answered-by.ts";
import type { DeclaredName } from "../base/model/declared-name.ts";
import type { EtcdQuirk } from "../base/model/etcd-policy.ts";
import type { HealthPolicy } from "../base/model/health-policy.ts";
import type { DefaultBridgeSetting } from "../base/model/default-bridge-setting.ts";
import type { HostNameSetting } from "../base/model/host-name-setting.ts";
import type { HostPolicy } from "../base/model/host-policy.ts";
import type { KindPolicy, NodeFilter } from "../base/model/kind-policy.ts";
import type { LabelServers } from "../base/model/label-policy.ts";
import type { RuleBackendSetting } from "../base/model/rule-backend.ts";
import type { QueryNames } from "../base/model/query-record.ts";
import type { RouteText } from "../base/model/server-text.ts";
import type { MissingContainerSetting, ServerOrder } from "../base/model/upstream-policy.ts";
import type { AddressOrder, PtrForm } from "../base/model/name-choices.ts";
import type { StoppedPolicy } from "../base/model/stopped-policy.ts";
import type { VisibleSetting } from "../base/model/visible-setting.ts";
import type { LogFormat, LogLevel } from "../base/model/log-choices.ts";
import type { DnsOption } from "./dns-option.ts";
import type { OnlyFilter } from "../base/model/only.ts";
import type { SettingSource } from "../base/model/setting-origins.ts";
import type { CapabilitySetting, KeeperSetting } from "./settings.ts";
import type { SwitchKey } from "./switches.ts";

/** Durations are in milliseconds, sizes in bytes. */
export type Values = {
  "log-level": LogLevel;
  "log-format": LogFormat;
  "metrics.addr": string;
  "metrics.containers": number;
  "lame-duck": number;
  capabilities: CapabilitySetting;
  keeper: KeeperSetting;
  answers: AnswersSetting;
  strict: boolean;
  "rule-backend": RuleBackendSetting;
  only: readonly OnlyFilter[];
  "trust-image-labels": boolean;
  "label-servers": LabelServers;
  health: HealthPolicy;
  stopped: StoppedPolicy;
  ptr: PtrForm;
  "address-order": AddressOrder;
  visible: VisibleSetting;
  "default-bridge": DefaultBridgeSetting;
  "host-docker-internal": HostNameSetting;
  zone: readonly string[];
  ttl: number;
  dns: readonly RouteText[];
  "dns-opt": readonly DnsOption[];
  networks: ReadonlyMap<string, readonly RouteText[]>;
  "resolv-conf": string;
  "host-names": HostPolicy["means"];
  "host-domain": string;
  records: readonly DeclaredName[];
  "records-dir": string;
  "forward.order": ServerOrder;
  "forward.budget": number;
  "forward.max-concurrent": number;
  "cache.size": number;
  "cache.min-ttl": number;
  "cache.max-ttl": number;
  "cache.max-negative-ttl": number;
  "cache.negative-ttl-without-soa": number;
  "cache.max-stale": number;
  "kind.nodes": readonly NodeFilter[];
  "kind.ip": string;
  "kind.mode": KindPolicy["mode"];
  "kind.families": KindPolicy["families"];
  "kind.route-localnet": KindPolicy["routeLocalnet"];
  "kind.expose": boolean;
  "kind.force": boolean;
  "kind.host-docker-internal": string;
  "forward.domain-needed": boolean;
  "forward.bogus-priv": boolean;
  "forward.missing-container": MissingContainerSetting;
  "queries.names": QueryNames;
  "queries.log": boolean;
  "etcd.endpoints": readonly string[];
  "etcd.zones": readonly string[];
  "etcd.prefix": string;
  "etcd.ca": string;
  "etcd.user": string;
  "etcd.password-file": string;
  "etcd.max-stale": number;
  "etcd.quirks": readonly EtcdQuirk[];
  "etcd.publish": boolean;
  "etcd.machine": string;
  "etcd.address": readonly string[];
  "etcd.routed-networks": readonly string[];
  "etcd.lease": number;
  "etcd.nearest-first": boolean;
} & Record<SwitchKey, boolean>;

export type Key = keyof Values;

export type LayerValues = { readonly [K in Key]?: Values[K] | undefined };

export interface SettingsLayer {
  readonly source: Exclude<SettingSource, "default">;
  readonly values: LayerValues;
  /** Where a key is set, for messages: `--strict`, `DNS11_STRICT`, `dns11.yaml:3:1: strict`. */
  readonly where: (key: Key) => string;
}
