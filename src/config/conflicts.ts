/**
 * Conflicts: settings that contradict each other, each with the place where it is set.
 */
import { LIMITS } from "../base/limits.ts";
import { FEATURES } from "../features.ts";
import { type FeatureEntry, NO_CHOICE_WITH_STRICT } from "./feature-entry.ts";
import type { Precedence } from "./layers.ts";
import { durationText } from "../base/lib/quantity.ts";
import type { RouteText } from "../base/model/server-text.ts";
import type { Key } from "./keys.ts";
import type { Settings } from "./settings.ts";
import type { KeptDomain } from "./zone-name.ts";

/** A line for each conflict. */
export function findConflicts(precedence: Precedence, settings: Settings): string[] {
  return [
    ...setInFolders(precedence).map(([key, what]) => conflictText(precedence, key, what)),
    ...serversByTls(settings).map(([key, what]) => conflictText(precedence, key, what)),
    ...withoutEffect(precedence, settings).map(([key, what]) => conflictText(precedence, key, what)),
    ...featureConflicts(settings).map(([key, what]) => conflictText(precedence, key, what)),
    ...strictChoices(settings).map(([key, what]) => conflictText(precedence, key, what)),
    ...crossedTtls(precedence, settings).map(([key, what]) => conflictText(precedence, key, what)),
    ...probePages(settings).map(([key, what]) => conflictText(precedence, key, what)),
  ];
}

type Conflict = readonly [Key, string];

function conflictText(precedence: Precedence, key: Key, what: string): string {
  return `${precedence.layerOf(key)?.where(key) ?? key}: ${what}`;
}

/** Of two lists only one would count, and nobody expects that of a folder of files. */
function setInFolders(precedence: Precedence): readonly Conflict[] {
  return precedence.listsInFolders.flatMap((key): Conflict[] => {
    const [, other] = precedence.layersOf(key);
    return other === undefined
      ? []
      : [[key, `is also set at ${other.where(key).replace(/: [a-z]+$/, "")}: put all of it in one of them`]];
  });
}

/** Docker asks no server by TLS, and nobody who wants TLS wants a query without. */
function serversByTls({ behaviour, routes: { everyone, networks } }: Settings): readonly Conflict[] {
  if (behaviour.failsOver) return [];
  const what =
    "has a server by TLS, which is not asked with forward.order: docker (strict sets it): choose another forward.order";
  const has = (routes: readonly RouteText[]): boolean =>
    routes.some(({ servers }) => servers.some((server) => typeof server === "object" && "tls" in server));
  return [
    ...(has(everyone) ? [["dns", what] as const] : []),
    ...([...networks.values()].some(has) ? [["networks", what] as const] : []),
  ];
}

/** Servers are queried as Docker does, which cannot be configured. */
function withoutEffect(precedence: Precedence, { behaviour }: Settings): readonly Conflict[] {
  if (behaviour.failsOver) return [];
  const isChosen = precedence.layerOf("forward.order") !== undefined;
  const what =
    `has no effect with forward.order: docker${isChosen ? "" : ", which strict sets"}: ` +
    "choose another forward.order or remove this setting";
  return precedence
    .changed("forward.", "cache.")
    .filter((key) => !ALWAYS.has(key))
    .map((key) => [key, what]);
}

/** These take effect with every order of servers. */
const ALWAYS: ReadonlySet<Key> = new Set([
  "forward.order",
  "forward.domain-needed",
  "forward.bogus-priv",
  "forward.missing-container",
]);

function keptDomains(settings: Settings): readonly KeptDomain[] {
  return FEATURES.flatMap((feature: FeatureEntry) => feature.keptDomains?.(settings) ?? []);
}

function featureConflicts(settings: Settings): readonly Conflict[] {
  const domains: string[] = [];
  const kept = keptDomains(settings);
  const isHostDomainUsed = FEATURES.some(
    (feature: FeatureEntry) => feature.hasNamesBelowHostDomain?.(settings) === true,
  );
  return FEATURES.flatMap((feature: FeatureEntry) => {
    const found = feature.conflicts?.(settings, { domains: [...domains], kept, isHostDomainUsed }) ?? [];
    domains.push(...(feature.domains?.(settings) ?? []));
    return found;
  }) as readonly Conflict[];
}

/** Choices about names that Docker does not have. */
function strictChoices({ isStrict, health, names }: Settings): readonly Conflict[] {
  if (!isStrict) return [];
  const keys: readonly Key[] = [
    ...(health === "ignore" ? [] : (["health"] as const)),
    ...(names.ptr === "network" ? [] : (["ptr"] as const)),
    ...(names.order === "shuffle" ? [] : (["address-order"] as const)),
  ];
  return keys.map((key) => [key, NO_CHOICE_WITH_STRICT]);
}

function crossedTtls(precedence: Precedence, { upstream: { cache } }: Settings): readonly Conflict[] {
  if (cache.ttlSecondsMin <= cache.ttlSecondsMax) return [];
  const [min, max] = [cache.ttlSecondsMin, cache.ttlSecondsMax].map((seconds) => durationText(seconds * 1000));
  const key = precedence.layerOf("cache.min-ttl") === undefined ? "cache.max-ttl" : "cache.min-ttl";
  return [[key, `cache.min-ttl (${min}) is longer than cache.max-ttl (${max})`]];
}

function probePages({ healthProbes }: Settings): readonly Conflict[] {
  const pages = healthProbes.map(({ page }) => page);
  const twice = pages.find((page, index) => pages.indexOf(page) !== index);
  if (twice !== undefined)
    return [["health-probes", `has the page "${twice}" twice: give each probe a page of its own`]];
  return pages.length <= LIMITS.healthProbes
    ? []
    : [["health-probes", `has ${pages.length} probes: use at most ${LIMITS.healthProbes}`]];
}
