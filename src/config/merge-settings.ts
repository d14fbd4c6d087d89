/**
 * MergeSettings: combines the layers into the settings of a run. For each key the layer with the highest precedence that
 * sets it provides the whole value: a list replaces a list. All conflicts are reported at once, each with its place.
 */
import { QUERIES_DEFAULTS } from "../base/model/query-record.ts";
import { DEFAULT_BEHAVIOUR, type Behaviour, STRICT_BEHAVIOUR } from "../base/model/behaviour.ts";
import { ETCD_DEFAULTS, type EtcdPolicy, PUBLISH_DEFAULTS, type PublishPolicy } from "../base/model/etcd-policy.ts";
import { HOST_DEFAULTS } from "../base/model/host-policy.ts";
import { scopeText } from "../base/model/declared-name.ts";
import { KIND_DEFAULTS, type KindPolicy } from "../base/model/kind-policy.ts";
import { LABEL_DEFAULTS } from "../base/model/label-policy.ts";
import { NAME_CHOICES_DEFAULTS } from "../base/model/name-choices.ts";
import { routeText } from "../base/model/server-text.ts";
import {
  FORWARD_DEFAULTS,
  CACHE_DEFAULTS,
  LOCAL_ONLY_DEFAULTS,
  type UpstreamPolicy,
} from "../base/model/upstream-policy.ts";
import { BadSettings } from "./bad-settings.ts";
import { Precedence } from "./precedence.ts";
import { findConflicts } from "./conflicts.ts";
import type { DnsOption } from "./dns-option.ts";
import { nodeFilterText } from "./node-filter.ts";
import { onlyText } from "../base/model/only.ts";
import { durationText, sizeText } from "../base/lib/quantity.ts";
import type { Key, SettingsLayer, Values } from "./settings-layer.ts";
import { METRICS_ADDRESS, type Settings } from "./settings.ts";
import { NEEDING_FAILOVER, SWITCHES } from "./switches.ts";

/** Layers in order of precedence, the highest first. Throws a Fault if settings contradict each other. */
export function mergeSettings(layers: readonly SettingsLayer[]): Settings {
  const precedence = new Precedence(layers);
  const logLevel = precedence.take("log-level", "info");
  const logFormat = precedence.take("log-format", "auto");
  const metrics = {
    address: precedence.take("metrics.addr", METRICS_ADDRESS),
    isExplicit: precedence.layerOf("metrics.addr") !== undefined,
    containers: precedence.take("metrics.containers", 0),
  };
  const lameDuckMs = precedence.take("lame-duck", 0, durationText);
  const capabilities = precedence.take("capabilities", "drop");
  const keeper = precedence.take("keeper", "on");
  const answers = precedence.take("answers", "auto");
  const isStrict = precedence.take("strict", false);
  const ruleBackend = precedence.take("rule-backend", "auto");
  const only = precedence.take("only", [], (filters) => filters.map((filter) => onlyText(filter)));
  const labels = {
    trustsImages: precedence.take("trust-image-labels", LABEL_DEFAULTS.trustsImages),
    servers: precedence.take("label-servers", LABEL_DEFAULTS.servers),
  };
  const health = precedence.take("health", "ignore");
  const stopped = precedence.take("stopped", isStrict ? "forward" : "nxdomain");
  const names = {
    ptr: precedence.take("ptr", NAME_CHOICES_DEFAULTS.ptr),
    order: precedence.take("address-order", NAME_CHOICES_DEFAULTS.order),
  };
  const visible = precedence.take("visible", "network");
  const defaultBridge = precedence.take("default-bridge", "off");
  const hostName = precedence.take("host-docker-internal", "off");
  const zones = precedence.take("zone", []);
  const behaviour = behaviourOf(precedence, isStrict);
  const everyone = precedence.take("dns", [], (routes) => routes.map((route) => routeText(route)));
  const options = precedence.take("dns-opt", [], (all) => all.map(({ text }) => text));
  const networks = precedence.take("networks", new Map(), networksText);
  const resolvConf = precedence.takeOptional("resolv-conf");
  const hostNames = {
    means: precedence.take("host-names", HOST_DEFAULTS.means),
    domain: precedence.take("host-domain", HOST_DEFAULTS.domain),
    zones,
  };
  const records = precedence.take("records", [], recordsText);
  const recordsDir = precedence.takeOptional("records-dir");
  const upstream = upstreamOf(precedence, options);
  const etcd = etcdOf(precedence, zones);
  const settings: Settings = {
    behaviour,
    isStrict,
    upstream,
    routes: { everyone, networks, isNdotsSet: options.some(({ kind }) => kind === "ndots") },
    health,
    stopped,
    names,
    records,
    recordsDir,
    only,
    labels,
    visible,
    defaultBridge,
    hostName,
    zones,
    kind: kindOf(precedence),
    resolvConf,
    hostNames,
    ruleBackend,
    logLevel,
    logFormat,
    metrics,
    lameDuckMs,
    capabilities,
    keeper,
    answers,
    queries: {
      names: precedence.take("queries.names", QUERIES_DEFAULTS.names),
      isLogged: precedence.take("queries.log", QUERIES_DEFAULTS.isLogged),
    },
    etcd,
    origins: Object.fromEntries(precedence.origins),
  };
  const conflicts = findConflicts(precedence, settings, options);
  if (conflicts.length > 0) throw new BadSettings(conflicts);
  return settings;
}

function behaviourOf(precedence: Precedence, isStrict: boolean): Behaviour {
  const base = isStrict ? STRICT_BEHAVIOUR : DEFAULT_BEHAVIOUR;
  const ttlMs = precedence.take("ttl", base.ttlSeconds * 1000, durationText);
  const failsOver = precedence.valueOf("switches.failover") ?? base.failsOver;
  const switched = SWITCHES.map((each): [keyof Behaviour, boolean] => {
    const fallback = base[each.behaviour] && (failsOver || !NEEDING_FAILOVER.includes(each));
    return [each.behaviour, precedence.take(each.key, fallback)];
  });
  return { ...base, ...(Object.fromEntries(switched) as Partial<Behaviour>), ttlSeconds: seconds(ttlMs) };
}

function upstreamOf(precedence: Precedence, options: readonly DnsOption[]): UpstreamPolicy {
  const has = (kind: DnsOption["kind"]): boolean => options.some((option) => option.kind === kind);
  const duration = (key: Key & `cache.${string}`, defaultSeconds: number): number =>
    seconds(precedence.take(key, defaultSeconds * 1000, durationText));
  return {
    forward: {
      order: precedence.take("forward.order", FORWARD_DEFAULTS.order),
      rotates: has("rotate"),
      usesTcp: has("use-vc"),
      budgetMs: budgetOf(precedence, options),
      queriesMax: precedence.take("forward.max-concurrent", FORWARD_DEFAULTS.queriesMax),
      missingContainer: precedence.take("forward.missing-container", FORWARD_DEFAULTS.missingContainer),
    },
    localOnly: {
      keepsDotless: precedence.take("forward.domain-needed", LOCAL_ONLY_DEFAULTS.keepsDotless),
      keepsPrivateReverse: precedence.take("forward.bogus-priv", LOCAL_ONLY_DEFAULTS.keepsPrivateReverse),
    },
    cache: {
      bytesMax: precedence.take("cache.size", CACHE_DEFAULTS.bytesMax, sizeText),
      ttlSecondsMin: duration("cache.min-ttl", CACHE_DEFAULTS.ttlSecondsMin),
      ttlSecondsMax: duration("cache.max-ttl", CACHE_DEFAULTS.ttlSecondsMax),
      negativeSecondsMax: duration("cache.max-negative-ttl", CACHE_DEFAULTS.negativeSecondsMax),
      negativeSecondsWithoutSoa: duration("cache.negative-ttl-without-soa", CACHE_DEFAULTS.negativeSecondsWithoutSoa),
      staleSecondsMax: duration("cache.max-stale", CACHE_DEFAULTS.staleSecondsMax),
    },
  };
}

function kindOf(precedence: Precedence): KindPolicy {
  return {
    nodes: precedence.take("kind.nodes", KIND_DEFAULTS.nodes, (filters) =>
      filters.map((filter) => nodeFilterText(filter)),
    ),
    address: precedence.take("kind.ip", KIND_DEFAULTS.address),
    mode: precedence.take("kind.mode", KIND_DEFAULTS.mode),
    families: precedence.take("kind.families", KIND_DEFAULTS.families),
    routeLocalnet: precedence.take("kind.route-localnet", KIND_DEFAULTS.routeLocalnet),
    isExposed: precedence.take("kind.expose", KIND_DEFAULTS.isExposed),
    isForced: precedence.take("kind.force", KIND_DEFAULTS.isForced),
    hostDockerInternal: precedence.take("kind.host-docker-internal", KIND_DEFAULTS.hostDockerInternal),
  };
}

function etcdOf(precedence: Precedence, zones: readonly string[]): EtcdPolicy {
  return {
    endpoints: precedence.take("etcd.endpoints", ETCD_DEFAULTS.endpoints),
    prefix: precedence.take("etcd.prefix", ETCD_DEFAULTS.prefix),
    zones: precedence.take("etcd.zones", ETCD_DEFAULTS.zones),
    ca: precedence.takeOptional("etcd.ca"),
    user: precedence.takeOptional("etcd.user"),
    passwordFile: precedence.takeOptional("etcd.password-file"),
    staleSecondsMax: seconds(precedence.take("etcd.max-stale", ETCD_DEFAULTS.staleSecondsMax * 1000, durationText)),
    quirks: precedence.take("etcd.quirks", ETCD_DEFAULTS.quirks),
    publish: publishOf(precedence, zones),
  };
}

function publishOf(precedence: Precedence, [zone = ""]: readonly string[]): PublishPolicy | undefined {
  const isOn = precedence.take("etcd.publish", false);
  const policy = {
    zone,
    machine: precedence.takeOptional("etcd.machine"),
    addresses: precedence.take("etcd.address", PUBLISH_DEFAULTS.addresses),
    routedNetworks: precedence.take("etcd.routed-networks", PUBLISH_DEFAULTS.routedNetworks),
    leaseSeconds: seconds(precedence.take("etcd.lease", PUBLISH_DEFAULTS.leaseSeconds * 1000, durationText)),
    isNearestFirst: precedence.take("etcd.nearest-first", PUBLISH_DEFAULTS.isNearestFirst),
  };
  return isOn ? policy : undefined;
}

/** The option `timeout:N` sets the same limit; the layer with the higher precedence decides which one is used. */
function budgetOf(precedence: Precedence, options: readonly DnsOption[]): number {
  const timeout = options.findLast(({ kind }) => kind === "timeout")?.number;
  const budgetMs = precedence.take("forward.budget", FORWARD_DEFAULTS.budgetMs, durationText);
  const optionLayer = precedence.layerOf("dns-opt");
  if (timeout === undefined || optionLayer === undefined || precedence.isBefore("forward.budget", "dns-opt")) {
    return budgetMs;
  }
  precedence.origins.set("forward.budget", { value: durationText(timeout * 1000), source: optionLayer.source });
  return timeout * 1000;
}

function networksText(networks: Values["networks"]): unknown {
  return Object.fromEntries(
    [...networks].map(([name, routes]) => [name, { dns: routes.map((route) => routeText(route)) }]),
  );
}

/** A list for every name; a long one only as a number. */
function recordsText(names: Values["records"]): unknown {
  if (names.length > RECORDS_SHOWN_MAX) return `${names.length} names`;
  return Object.fromEntries(
    names.map(({ name, scope, records, alias, containers }) => [
      scope.kind === "everybody" ? name : `${name} (${scopeText(scope)})`,
      [
        ...records.map(({ text }) => text),
        ...(alias === undefined ? [] : [`CNAME ${alias}`]),
        ...containers.map((each) => `container ${each}`),
      ],
    ]),
  );
}

const RECORDS_SHOWN_MAX = 100;

function seconds(ms: number): number {
  return Math.round(ms / 1000);
}
