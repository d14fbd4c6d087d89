/**
 * MergeSettings: combines the layers into the settings of a run. For each key the layer with the highest precedence that
 * sets it provides the whole value: a list replaces a list. All conflicts are reported at once, each with its place.
 */
import {
  type Behaviour,
  DEFAULT_BEHAVIOUR,
  DEFAULT_FORWARDING,
  DOCKER_FORWARDING,
  STRICT_BEHAVIOUR,
} from "../base/model/behaviour.ts";
import { isNodeServer, routeText } from "../base/model/server-text.ts";
import {
  CACHE_DEFAULTS,
  type CachePolicy,
  FORWARD_DEFAULTS,
  type UpstreamPolicy,
} from "../base/model/upstream-policy.ts";
import type { SettingOrigin } from "../base/model/setting-origins.ts";
import { FEATURES } from "../features.ts";
import type { FeatureEntry } from "./feature-entry.ts";
import { BadSettings } from "./bad-settings.ts";
import { Precedence, type SettingsLayer } from "./layers.ts";
import { findConflicts } from "./conflicts.ts";
import type { Settings } from "./settings.ts";
import { FEATURE_KEYS, FEATURE_MAPS, type Key, type Values } from "./keys.ts";

/** Layers in order of precedence, the highest first. Throws a Fault if settings contradict each other. */
export function mergeSettings(layers: readonly SettingsLayer[]): Settings {
  const precedence = new Precedence(layers);
  // The origins are listed in the order in which values are taken.
  const start = precedence.takeAll({ logLevel: "log-level", logFormat: "log-format" });
  const metrics = {
    address: precedence.take("metrics.addr"),
    isExplicit: precedence.layerOf("metrics.addr") !== undefined,
    containers: precedence.take("metrics.containers"),
  };
  const run = precedence.takeAll({
    healthProbes: "health-probes",
    lameDuckMs: "lame-duck",
    keeper: "keeper",
    isStrict: "strict",
    ruleBackend: "rule-backend",
    only: "only",
  });
  const { isStrict } = run;
  const labels = precedence.takeAll({ trustsImages: "trust-image-labels", servers: "label-servers" });
  const health = precedence.take("health");
  const names = precedence.takeAll({ ptr: "ptr", order: "address-order" });
  const seen = precedence.takeAll({ visible: "visible", hostName: "host-docker-internal" });
  const features = Object.fromEntries([
    ...FEATURE_KEYS.map((key) => [key, precedence.take(key)]),
    ...Object.entries(FEATURE_MAPS).map(([key, each]) => [key, precedence.takeFeatureMap(key, each)]),
  ]);
  const isBridgeServed = FEATURES.some((feature: FeatureEntry) => feature.servesDefaultBridge?.({ features }) === true);
  const zones = FEATURES.flatMap((feature: FeatureEntry) => feature.zones?.({ features }) ?? []);
  const order = precedence.take("forward.order");
  const upstream = upstreamOf(precedence, order);
  const behaviour = behaviourOf(precedence, isStrict, order === "docker" ? undefined : upstream.cache);
  const everyone = precedence.take("dns");
  const networks = precedence.takeMap("networks", new Map(), networksText);
  const resolvConf = precedence.takeOptional("resolv-conf");
  const hostDomain = precedence.take("host-domain");
  const hostZones = [
    ...FEATURES.flatMap((feature: FeatureEntry) => feature.hostZones?.({ features }) ?? []),
    ...nodeDomains(everyone),
  ];
  const settings: Settings = {
    ...start,
    ...run,
    ...seen,
    behaviour,
    upstream,
    routes: { everyone, networks },
    health,
    names,
    labels,
    zones,
    defaultBridge: isBridgeServed ? "names" : "off",
    resolvConf,
    hostDomain,
    hostZones,
    metrics,
    queries: precedence.takeAll({ names: "queries.names" }),
    features,
    origins: bySection(precedence.origins),
  };
  BadSettings.throwAny(findConflicts(precedence, settings));
  return settings;
}

/** `cache` is undefined where servers are queried as Docker does. */
function behaviourOf(precedence: Precedence, isStrict: boolean, cache: CachePolicy | undefined): Behaviour {
  const mode = isStrict ? STRICT_BEHAVIOUR : DEFAULT_BEHAVIOUR;
  return {
    ...mode,
    ...(cache === undefined ? DOCKER_FORWARDING : DEFAULT_FORWARDING),
    ...(cache !== undefined && { caches: cache.bytesMax > 0, servesStale: cache.staleSecondsMax > 0 }),
    prefersOwnProject: precedence.take("own-project"),
    ttlSeconds: seconds(precedence.take("ttl", mode.ttlSeconds * 1000)),
  };
}

function upstreamOf(precedence: Precedence, order: Values["forward.order"]): UpstreamPolicy {
  return {
    forward: {
      order: order === "rotate" || order === "docker" ? FORWARD_DEFAULTS.order : order,
      rotates: order === "rotate",
      ...precedence.takeAll({
        usesTcp: "forward.tcp",
        budgetMs: "forward.budget",
        queriesMax: "forward.max-concurrent",
        missingContainer: "forward.missing-container",
      }),
      tlsAuthorities: precedence.takeOptional("forward.tls-ca"),
    },
    localOnly: precedence.takeAll({ keepsDotless: "forward.domain-needed", keepsPrivateReverse: "forward.bogus-priv" }),
    cache: {
      bytesMax: precedence.take("cache.size", order === "docker" ? 0 : CACHE_DEFAULTS.bytesMax),
      ttlSecondsMin: seconds(precedence.take("cache.min-ttl")),
      ttlSecondsMax: seconds(precedence.take("cache.max-ttl")),
      negativeSecondsMax: seconds(precedence.take("cache.max-negative-ttl")),
      negativeSecondsWithoutSoa: seconds(precedence.take("cache.negative-ttl-without-soa")),
      staleSecondsMax: seconds(precedence.take("cache.max-stale")),
    },
  };
}

/** The domains of clusters that nodes are asked for: the host asks for them, too. */
function nodeDomains(routes: Values["dns"]): readonly string[] {
  return routes.flatMap(({ domains, servers }) => (servers.some(isNodeServer) ? domains : []));
}

function networksText(networks: Values["networks"]): unknown {
  return Object.fromEntries(
    [...networks].map(([name, routes]) => [name, { dns: routes.map((route) => routeText(route)) }]),
  );
}

function seconds(ms: number): number {
  return Math.round(ms / 1000);
}

/** Keys with the same first part stand together, whoever declares them: in a file they are one section. */
function bySection(origins: Precedence["origins"]): Settings["origins"] {
  const sections = new Map<string, [Key, SettingOrigin][]>();
  for (const [key, origin] of origins) {
    const [section = key] = key.split(".", 1);
    sections.set(section, [...(sections.get(section) ?? []), [key, origin]]);
  }
  return Object.fromEntries([...sections.values()].flat());
}
