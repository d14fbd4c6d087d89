/**
 * Settle: what several sources say becomes the settings of a run. For each key the first source that says anything counts,
 * whole: a list replaces a list. What cannot be meant together is told, all of it at once, each with its place.
 */
import { QUERIES_DEFAULTS } from "../base/model/query-record.ts";
import { DEFAULT_BEHAVIOUR, type Behaviour, STRICT_BEHAVIOUR } from "../base/model/behaviour.ts";
import { KIND_DEFAULTS, type KindPolicy } from "../base/model/kind-policy.ts";
import { LABEL_DEFAULTS } from "../base/model/label-policy.ts";
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
import { durationText, sizeText } from "./quantity.ts";
import type { Key, SettingsLayer, Values } from "./settings-layer.ts";
import { METRICS_ADDRESS, type Settings } from "./settings.ts";
import { NEEDING_FAILOVER, SWITCHES } from "./switches.ts";

/** Whoever counts more stands first. Throws a Fault where what was said contradicts itself. */
export function mergeSettings(layers: readonly SettingsLayer[]): Settings {
  const choice = new Precedence(layers);
  const logLevel = choice.take("log-level", "info");
  const logFormat = choice.take("log-format", "auto");
  const metrics = {
    address: choice.take("metrics.addr", METRICS_ADDRESS),
    isExplicit: choice.layerOf("metrics.addr") !== undefined,
    containers: choice.take("metrics.containers", 0),
  };
  const lameDuckMs = choice.take("lame-duck", 0, durationText);
  const capabilities = choice.take("capabilities", "drop");
  const keeper = choice.take("keeper", "on");
  const isStrict = choice.take("strict", false);
  const ruleBackend = choice.take("rule-backend", "auto");
  const only = choice.take("only", [], (filters) => filters.map((filter) => onlyText(filter)));
  const labels = {
    trustsImages: choice.take("trust-image-labels", LABEL_DEFAULTS.trustsImages),
    servers: choice.take("label-servers", LABEL_DEFAULTS.servers),
  };
  const behaviour = behaviourOf(choice, isStrict);
  const everyone = choice.take("dns", [], (routes) => routes.map((route) => routeText(route)));
  const options = choice.take("dns-opt", [], (all) => all.map(({ text }) => text));
  const networks = choice.take("networks", new Map(), networksText);
  const resolvConf = choice.takeOptional("resolv-conf");
  const upstream = upstreamOf(choice, options);
  const settings: Settings = {
    behaviour,
    isStrict,
    upstream,
    routes: { everyone, networks, isNdotsSet: options.some(({ kind }) => kind === "ndots") },
    only,
    labels,
    kind: kindOf(choice),
    resolvConf,
    ruleBackend,
    logLevel,
    logFormat,
    metrics,
    lameDuckMs,
    capabilities,
    keeper,
    queries: {
      names: choice.take("queries.names", QUERIES_DEFAULTS.names),
      isLogged: choice.take("queries.log", QUERIES_DEFAULTS.isLogged),
    },
    origins: Object.fromEntries(choice.origins),
  };
  const contradictions = findConflicts(choice, settings, options);
  if (contradictions.length > 0) throw new BadSettings(contradictions);
  return settings;
}

function behaviourOf(choice: Precedence, isStrict: boolean): Behaviour {
  const base = isStrict ? STRICT_BEHAVIOUR : DEFAULT_BEHAVIOUR;
  const ttlMs = choice.take("ttl", base.ttlSeconds * 1000, durationText);
  const failsOver = choice.valueOf("switches.failover") ?? base.failsOver;
  const switched = SWITCHES.map((each): [keyof Behaviour, boolean] => {
    const fallback = base[each.behaviour] && (failsOver || !NEEDING_FAILOVER.includes(each));
    return [each.behaviour, choice.take(each.key, fallback)];
  });
  return { ...base, ...(Object.fromEntries(switched) as Partial<Behaviour>), ttlSeconds: seconds(ttlMs) };
}

function upstreamOf(choice: Precedence, options: readonly DnsOption[]): UpstreamPolicy {
  const has = (kind: DnsOption["kind"]): boolean => options.some((option) => option.kind === kind);
  const duration = (key: Key & `cache.${string}`, defaultSeconds: number): number =>
    seconds(choice.take(key, defaultSeconds * 1000, durationText));
  return {
    forward: {
      order: choice.take("forward.order", FORWARD_DEFAULTS.order),
      rotates: has("rotate"),
      usesTcp: has("use-vc"),
      budgetMs: budgetOf(choice, options),
      queriesMax: choice.take("forward.max-concurrent", FORWARD_DEFAULTS.queriesMax),
    },
    localOnly: {
      keepsDotless: choice.take("forward.domain-needed", LOCAL_ONLY_DEFAULTS.keepsDotless),
      keepsPrivateReverse: choice.take("forward.bogus-priv", LOCAL_ONLY_DEFAULTS.keepsPrivateReverse),
    },
    cache: {
      bytesMax: choice.take("cache.size", CACHE_DEFAULTS.bytesMax, sizeText),
      ttlSecondsMin: duration("cache.min-ttl", CACHE_DEFAULTS.ttlSecondsMin),
      ttlSecondsMax: duration("cache.max-ttl", CACHE_DEFAULTS.ttlSecondsMax),
      negativeSecondsMax: duration("cache.max-negative-ttl", CACHE_DEFAULTS.negativeSecondsMax),
      negativeSecondsWithoutSoa: duration("cache.negative-ttl-without-soa", CACHE_DEFAULTS.negativeSecondsWithoutSoa),
      staleSecondsMax: duration("cache.max-stale", CACHE_DEFAULTS.staleSecondsMax),
    },
  };
}

function kindOf(choice: Precedence): KindPolicy {
  return {
    nodes: choice.take("kind.nodes", KIND_DEFAULTS.nodes, (filters) => filters.map((filter) => nodeFilterText(filter))),
    address: choice.take("kind.ip", KIND_DEFAULTS.address),
    mode: choice.take("kind.mode", KIND_DEFAULTS.mode),
    families: choice.take("kind.families", KIND_DEFAULTS.families),
    routeLocalnet: choice.take("kind.route-localnet", KIND_DEFAULTS.routeLocalnet),
    isExposed: choice.take("kind.expose", KIND_DEFAULTS.isExposed),
    isForced: choice.take("kind.force", KIND_DEFAULTS.isForced),
    hostDockerInternal: choice.take("kind.host-docker-internal", KIND_DEFAULTS.hostDockerInternal),
  };
}

/** `timeout:N` among the options says the same; whichever of the two was said by who counts more is taken. */
function budgetOf(choice: Precedence, options: readonly DnsOption[]): number {
  const timeout = options.findLast(({ kind }) => kind === "timeout")?.number;
  const budgetMs = choice.take("forward.budget", FORWARD_DEFAULTS.budgetMs, durationText);
  const optionLayer = choice.layerOf("dns-opt");
  if (timeout === undefined || optionLayer === undefined || choice.isBefore("forward.budget", "dns-opt")) {
    return budgetMs;
  }
  choice.origins.set("forward.budget", { value: durationText(timeout * 1000), source: optionLayer.source });
  return timeout * 1000;
}

function networksText(networks: Values["networks"]): unknown {
  return Object.fromEntries(
    [...networks].map(([name, routes]) => [name, { dns: routes.map((route) => routeText(route)) }]),
  );
}

function seconds(ms: number): number {
  return Math.round(ms / 1000);
}
