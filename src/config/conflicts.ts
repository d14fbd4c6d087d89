/**
 * Contradictions: what cannot be meant together, each with the place where it was said.
 */
import type { Precedence } from "./precedence.ts";
import type { DnsOption } from "./dns-option.ts";
import { durationText } from "./quantity.ts";
import type { Key } from "./settings-layer.ts";
import type { Settings } from "./settings.ts";
import { NEEDING_FAILOVER } from "./switches.ts";

/** A line each. `options` are those of dns-opt that count. */
export function findConflicts(choice: Precedence, settings: Settings, options: readonly DnsOption[]): string[] {
  return [
    ...withoutEffect(choice, settings, options).map(([key, what]) => conflictText(choice, key, what)),
    ...crossedTtls(choice, settings).map(([key, what]) => conflictText(choice, key, what)),
    ...nothingToLog(settings).map(([key, what]) => conflictText(choice, key, what)),
    ...duplicateTimeout(choice, options).map(([key, what]) => conflictText(choice, key, what)),
  ];
}

type Conflict = readonly [Key, string];

function conflictText(choice: Precedence, key: Key, what: string): string {
  return `${choice.layerOf(key)?.where(key) ?? key}: ${what}`;
}

/** Docker's way of asking has nothing to set. */
function withoutEffect(
  choice: Precedence,
  { behaviour, isStrict }: Settings,
  options: readonly DnsOption[],
): readonly Conflict[] {
  if (behaviour.failsOver) return [];
  const what =
    `has no effect without the switch failover${isStrict ? ", which strict turns off" : ""}: ` +
    "turn failover on as well, or leave this out";
  const switches = NEEDING_FAILOVER.filter((each) => behaviour[each.behaviour]).map(({ key }) => key);
  const isAskedOtherwise = options.some(({ kind }) => kind !== "ndots");
  const ways = isStrict
    ? [
        ...choice.changed("forward.", "cache.").filter((key) => !LOCAL_ONLY.has(key)),
        ...(isAskedOtherwise ? DNS_OPT : []),
      ]
    : [];
  return [...switches, ...ways].map((key) => [key, what]);
}

const DNS_OPT: readonly Key[] = ["dns-opt"];
/** They take effect in every mode. */
const LOCAL_ONLY: ReadonlySet<Key> = new Set(["forward.domain-needed", "forward.bogus-priv"]);

function crossedTtls(choice: Precedence, { upstream: { cache } }: Settings): readonly Conflict[] {
  if (cache.ttlSecondsMin <= cache.ttlSecondsMax) return [];
  const [least, longest] = [cache.ttlSecondsMin, cache.ttlSecondsMax].map((seconds) => durationText(seconds * 1000));
  const key = choice.layerOf("cache.min-ttl") === undefined ? "cache.max-ttl" : "cache.min-ttl";
  return [[key, `cache.min-ttl (${least}) is longer than cache.max-ttl (${longest})`]];
}

function nothingToLog({ queries }: Settings): readonly Conflict[] {
  if (!queries.isLogged || queries.names !== "off") return [];
  return [["queries.log", "queries.names is off, so there are no queries to log: make that hidden, or leave this out"]];
}

function duplicateTimeout(choice: Precedence, options: readonly DnsOption[]): readonly Conflict[] {
  const layer = choice.layerOf("forward.budget");
  const isTwice = layer !== undefined && layer === choice.layerOf("dns-opt");
  if (!isTwice || !options.some(({ kind }) => kind === "timeout")) return [];
  return [["forward.budget", "the option timeout of dns-opt says the same: leave one of them out"]];
}
