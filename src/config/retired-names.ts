/**
 * Retired names: flags, keys, variables and values of earlier versions, so that an error can name the current one.
 */

/** Retired keys of the settings file with their replacements. A group stands for all of its keys. */
const KEYS: Readonly<Record<string, string>> = {
  rules: "rule-backend",
  leave: "forward.domain-needed and forward.bogus-priv",
  "forward.max": "forward.max-concurrent",
  "cache.negative": "cache.max-negative-ttl",
  "cache.negative-without-soa": "cache.negative-ttl-without-soa",
  "cache.stale": "cache.max-stale",
  "kind.way": "kind.mode",
  "kind.host-name": "kind.host-docker-internal",
  "switches.stale": "switches.serve-stale",
  "switches.fit": "switches.truncation",
  "switches.merge": "switches.coalesce",
  "switches.explain-failures": "switches.extended-errors",
  "switches.fold-case": "switches.ignore-case",
};

const VALUES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  capabilities: { limit: "drop" },
  "forward.order": { strict: "sequential", race: "parallel" },
  "kind.host-docker-internal": { ask: "forward" },
};

export const RETIRED_VARIABLES: Readonly<Record<string, string>> = {
  DNS11_KIND_WAY: "DNS11_KIND_MODE",
  DNS11_RULES: "DNS11_RULE_BACKEND",
};

/** Without dashes; those of switches also exist with `no-`. */
export const RETIRED_FLAGS: Readonly<Record<string, string>> = {
  "kind-way": "kind-mode",
  rules: "rule-backend",
};

export const RETIRED_SWITCHES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(KEYS)
    .filter(([key]) => key.startsWith("switches."))
    .map((pair) => pair.map((key) => key.replace("switches.", "")) as [string, string]),
);

/** The key to use in place of this one. */
export function successorOfKey(key: string): string | undefined {
  return Object.hasOwn(KEYS, key) ? KEYS[key] : undefined;
}

/** The value to use in place of this one. */
export function successorOfValue(key: string, value: unknown): string | undefined {
  const values = Object.hasOwn(VALUES, key) ? VALUES[key] : undefined;
  return values !== undefined && typeof value === "string" && Object.hasOwn(values, value) ? values[value] : undefined;
}
