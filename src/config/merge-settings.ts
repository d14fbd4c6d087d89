/**
 * MergeSettings: combines the layers into the settings of a run. For each key the layer with the highest precedence that
 * sets it provides the whole value: a list replaces a list. All conflicts are reported at once, each with its place.
 */
import { DEFAULT_BEHAVIOUR, type Behaviour, STRICT_BEHAVIOUR } from "../base/model/behaviour.ts";
import type { EtcdPolicy, PublishPolicy } from "../base/model/etcd-policy.ts";
import { scopeText } from "../base/model/declared-name.ts";
import type { KindPolicy } from "../base/model/kind-policy.ts";
import { routeText } from "../base/model/server-text.ts";
import type { UpstreamPolicy } from "../base/model/upstream-policy.ts";
import { BadSettings } from "./bad-settings.ts";
import { Precedence } from "./precedence.ts";
import { findConflicts } from "./conflicts.ts";
import type { DnsOption } from "./dns-option.ts";
import { durationText } from "../base/lib/quantity.ts";
import type { SettingsLayer } from "./settings-layer.ts";
import type { Settings } from "./settings.ts";
import type { Values } from "./settings-table.ts";
import { NEEDING_FAILOVER, SWITCHES } from "./switches.ts";

/** Layers in order of precedence, the highest first. Throws a Fault if settings contradict each other. */
export function mergeSettings(layers: readonly SettingsLayer[]): Settings {
  const precedence = new Precedence(layers);
  const logLevel = precedence.take("log-level");
  const logFormat = precedence.take("log-format");
  const metrics = {
    address: precedence.take("metrics.addr"),
    isExplicit: precedence.layerOf("metrics.addr") !== undefined,
    containers: precedence.take("metrics.containers"),
  };
  const lameDuckMs = precedence.take("lame-duck");
  const capabilities = precedence.take("capabilities");
  const keeper = precedence.take("keeper");
  const answers = precedence.take("answers");
  const isStrict = precedence.take("strict");
  const ruleBackend = precedence.take("rule-backend");
  const only = precedence.take("only");
  const labels = {
    trustsImages: precedence.take("trust-image-labels"),
    servers: precedence.take("label-servers"),
  };
  const health = precedence.take("health");
  const stopped = precedence.take("stopped", isStrict ? "forward" : "nxdomain");
  const names = {
    ptr: precedence.take("ptr"),
    order: precedence.take("address-order"),
  };
  const visible = precedence.take("visible");
  const defaultBridge = precedence.take("default-bridge");
  const hostName = precedence.take("host-docker-internal");
  const zones = precedence.take("zone");
  const behaviour = behaviourOf(precedence, isStrict);
  const everyone = precedence.take("dns");
  const options = precedence.take("dns-opt");
  const networks = precedence.takeMap("networks", new Map(), networksText);
  const resolvConf = precedence.takeOptional("resolv-conf");
  const hostNames = {
    means: precedence.take("host-names"),
    domain: precedence.take("host-domain"),
    zones,
  };
  const records = precedence.takeMap("records", [], recordsText);
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
      names: precedence.take("queries.names"),
      isLogged: precedence.take("queries.log"),
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
  const ttlMs = precedence.take("ttl", base.ttlSeconds * 1000);
  const failsOver = precedence.valueOf("switches.failover") ?? base.failsOver;
  const switched = SWITCHES.map((each): [keyof Behaviour, boolean] => {
    const fallback = base[each.behaviour] && (failsOver || !NEEDING_FAILOVER.includes(each));
    return [each.behaviour, precedence.take(each.key, fallback)];
  });
  return { ...base, ...(Object.fromEntries(switched) as Partial<Behaviour>), ttlSeconds: seconds(ttlMs) };
}

function upstreamOf(precedence: Precedence, options: readonly DnsOption[]): UpstreamPolicy {
  const has = (kind: DnsOption["kind"]): boolean => options.some((option) => option.kind === kind);
  return {
    forward: {
      order: precedence.take("forward.order"),
      rotates: has("rotate"),
      usesTcp: has("use-vc"),
      budgetMs: budgetOf(precedence, options),
      queriesMax: precedence.take("forward.max-concurrent"),
      missingContainer: precedence.take("forward.missing-container"),
    },
    localOnly: {
      keepsDotless: precedence.take("forward.domain-needed"),
      keepsPrivateReverse: precedence.take("forward.bogus-priv"),
    },
    cache: {
      bytesMax: precedence.take("cache.size"),
      ttlSecondsMin: seconds(precedence.take("cache.min-ttl")),
      ttlSecondsMax: seconds(precedence.take("cache.max-ttl")),
      negativeSecondsMax: seconds(precedence.take("cache.max-negative-ttl")),
      negativeSecondsWithoutSoa: seconds(precedence.take("cache.negative-ttl-without-soa")),
      staleSecondsMax: seconds(precedence.take("cache.max-stale")),
    },
  };
}

function kindOf(precedence: Precedence): KindPolicy {
  return {
    nodes: precedence.take("kind.nodes"),
    address: precedence.take("kind.ip"),
    mode: precedence.take("kind.mode"),
    families: precedence.take("kind.families"),
    routeLocalnet: precedence.take("kind.route-localnet"),
    isExposed: precedence.take("kind.expose"),
    isForced: precedence.take("kind.force"),
    hostDockerInternal: precedence.take("kind.host-docker-internal"),
  };
}

function etcdOf(precedence: Precedence, zones: readonly string[]): EtcdPolicy {
  return {
    endpoints: precedence.take("etcd.endpoints"),
    prefix: precedence.take("etcd.prefix"),
    zones: precedence.take("etcd.zones"),
    ca: precedence.takeOptional("etcd.ca"),
    user: precedence.takeOptional("etcd.user"),
    passwordFile: precedence.takeOptional("etcd.password-file"),
    staleSecondsMax: seconds(precedence.take("etcd.max-stale")),
    quirks: precedence.take("etcd.quirks"),
    publish: publishOf(precedence, zones),
  };
}

function publishOf(precedence: Precedence, [zone = ""]: readonly string[]): PublishPolicy | undefined {
  const isOn = precedence.take("etcd.publish");
  const policy = {
    zone,
    machine: precedence.takeOptional("etcd.machine"),
    addresses: precedence.take("etcd.address"),
    routedNetworks: precedence.take("etcd.routed-networks"),
    leaseSeconds: seconds(precedence.take("etcd.lease")),
    isNearestFirst: precedence.take("etcd.nearest-first"),
  };
  return isOn ? policy : undefined;
}

/** The option `timeout:N` sets the same limit; the layer with the higher precedence decides which one is used. */
function budgetOf(precedence: Precedence, options: readonly DnsOption[]): number {
  const timeout = options.findLast(({ kind }) => kind === "timeout")?.number;
  const budgetMs = precedence.take("forward.budget");
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
