// Proves the precedence of flag, environment, file and default, the resulting settings, and the conflicts.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import { parseDnsOption } from "../../../src/config/dns-option.ts";
import type { SettingsLayer, LayerValues } from "../../../src/config/settings-layer.ts";
import { changedKeys } from "../../../src/base/model/setting-origins.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { NEEDING_FAILOVER, SWITCHES } from "../../../src/config/switches.ts";
import { DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { parseRoute } from "../../../src/base/model/server-text.ts";
import { UPSTREAM_DEFAULTS } from "../../../src/base/model/upstream-policy.ts";

test("without any layer: the defaults", () => {
  const settings = mergeSettings([]);
  assert.deepEqual(settings.behaviour, DEFAULT_BEHAVIOUR);
  assert.deepEqual(settings.upstream, UPSTREAM_DEFAULTS);
  assert.deepEqual(settings.routes, { everyone: [], networks: new Map(), isNdotsSet: false });
  assert.deepEqual([settings.isStrict, settings.logLevel, settings.only], [false, "info", []]);
  assert.deepEqual(settings.labels, { trustsImages: false, servers: "container" });
  assert.equal(settings.resolvConf, undefined);
  assert.ok(Object.values(settings.origins).every(({ source }) => source === "default"));
  assert.deepEqual(settings.origins["cache.size"], { value: "32MiB", source: "default" });
});

test("strict alone gives Docker's behaviour", () => {
  assert.deepEqual(mergeSettings([flags({ strict: true })]).behaviour, STRICT_BEHAVIOUR);
});

test("there is a switch for every difference between the modes, except the TTL", () => {
  const keys = Object.keys(DEFAULT_BEHAVIOUR).filter((key) => key !== "ttlSeconds");
  assert.deepEqual(SWITCHES.map(({ behaviour }) => behaviour).toSorted(), keys.toSorted());
});

for (const { name, key, behaviour, needsFailover } of SWITCHES) {
  test(`the switch ${name} turns that one thing off, and on again in strict`, () => {
    const off = mergeSettings([flags({ [key]: false })]).behaviour;
    assert.equal(off[behaviour], false);
    const failover = needsFailover === true ? { "switches.failover": true } : {};
    const on = mergeSettings([flags({ strict: true, ...failover, [key]: true })]).behaviour;
    assert.deepEqual({ ...on, [behaviour]: false, failsOver: false }, STRICT_BEHAVIOUR);
    assert.equal(on[behaviour], true);
  });
}

test("a flag has precedence over the environment, the environment over the file, the file over the default", () => {
  const all = [flags({ ttl: 1_000 }), environment({ ttl: 2_000 }), file({ ttl: 3_000 })];
  const results = [0, 1, 2, 3].map((first) => mergeSettings(all.slice(first)));
  assert.deepEqual(
    results.map(({ behaviour, origins }) => [behaviour.ttlSeconds, origins["ttl"]?.source]),
    [
      [1, "flag"],
      [2, "environment"],
      [3, "file"],
      [5, "default"],
    ],
  );
});

test("false is a value, and so is an empty list", () => {
  const low = file({ strict: true, dns: [parseRoute("host")] });
  const settings = mergeSettings([flags({ strict: false, dns: [] }), low]);
  assert.deepEqual([settings.isStrict, settings.routes.everyone], [false, []]);
});

test("a list replaces a list", () => {
  const [mine, theirs] = ["10.0.0.1", "10.0.0.2"].map((text) => [parseRoute(text)]);
  const { routes, origins } = mergeSettings([flags({ dns: mine }), file({ dns: theirs })]);
  assert.deepEqual(routes.everyone, mine);
  assert.deepEqual(origins["dns"], { value: ["10.0.0.1"], source: "flag" });
});

test("resolver options become settings", () => {
  const options = ["ndots:1", "rotate", "use-vc", "timeout:2"].map((text) => parseDnsOption(text));
  const { upstream, routes, origins } = mergeSettings([flags({ "dns-opt": options })]);
  assert.equal(routes.isNdotsSet, true);
  assert.deepEqual(
    [upstream.forward.rotates, upstream.forward.usesTcp, upstream.forward.budgetMs],
    [true, true, 2_000],
  );
  assert.deepEqual(origins["forward.budget"], { value: "2s", source: "flag" });
});

test("the layer with precedence decides between timeout and forward.budget", () => {
  const timeout = { "dns-opt": [parseDnsOption("timeout:2")] };
  const budget = { "forward.budget": 3_000 };
  const budgetOf = (...layers: SettingsLayer[]): number => mergeSettings(layers).upstream.forward.budgetMs;
  assert.equal(budgetOf(flags(timeout), file(budget)), 2_000);
  assert.equal(budgetOf(flags(budget), file(timeout)), 3_000);
});

test("every key of forward and cache takes effect", () => {
  const { upstream } = mergeSettings([
    file({
      "forward.order": "parallel",
      "forward.budget": 2_500,
      "forward.max-concurrent": 10,
      "forward.missing-container": "fallback",
      "cache.size": 2 ** 20,
      "cache.min-ttl": 1_000,
      "cache.max-ttl": 2_000,
      "cache.max-negative-ttl": 0,
      "cache.negative-ttl-without-soa": 3_000,
      "cache.max-stale": 0,
      "forward.domain-needed": true,
      "forward.bogus-priv": true,
    }),
  ]);
  assert.deepEqual(upstream, {
    forward: {
      order: "parallel",
      rotates: false,
      usesTcp: false,
      budgetMs: 2_500,
      queriesMax: 10,
      missingContainer: "fallback",
    },
    cache: {
      bytesMax: 2 ** 20,
      ttlSecondsMin: 1,
      ttlSecondsMax: 2,
      negativeSecondsMax: 0,
      negativeSecondsWithoutSoa: 3,
      staleSecondsMax: 0,
    },
    localOnly: { keepsDotless: true, keepsPrivateReverse: true },
  });
});

test("without failover the switches that need it are off, which is no conflict unless one is set", () => {
  const { behaviour } = mergeSettings([flags({ "switches.failover": false })]);
  assert.ok(NEEDING_FAILOVER.every((each) => !behaviour[each.behaviour]));
  assert.ok(behaviour.answersSpecialNames && behaviour.followsHost);
});

// Settings from flags, and the beginnings of the reported lines.
const CONFLICTS: readonly (readonly [string, LayerValues, readonly string[]])[] = [
  ...NEEDING_FAILOVER.map(
    ({ name, key }) =>
      [
        `${name} in strict`,
        { strict: true, [key]: true },
        [`--${key}: has no effect without the switch failover`],
      ] as const,
  ),
  [
    "cache without failover",
    { "switches.failover": false, "switches.cache": true },
    ["--switches.cache: has no effect"],
  ],
  [
    "settings for forwarding in strict",
    { strict: true, "forward.order": "parallel", "cache.size": 2 ** 20, "cache.max-stale": 86_400_000 },
    ["--forward.order: has no effect", "--cache.size: has no effect"],
  ],
  ["rotate in strict", { strict: true, "dns-opt": [parseDnsOption("rotate")] }, ["--dns-opt: has no effect"]],
  [
    "min-ttl over max-ttl",
    { "cache.min-ttl": 60_000, "cache.max-ttl": 5_000 },
    ["--cache.min-ttl: cache.min-ttl (1m) is"],
  ],
  ["min-ttl's default over nothing", { "cache.min-ttl": 60_000 }, []],
  [
    "timeout and budget",
    { "dns-opt": [parseDnsOption("timeout:2")], "forward.budget": 1_000 },
    ["--forward.budget: conflicts with timeout"],
  ],
  [
    "a log of queries that are not kept",
    { "queries.log": true, "queries.names": "off" },
    ["--queries.log: has no effect with queries.names: off"],
  ],
  ["a log of queries without names", { "queries.log": true, "queries.names": "hidden" }, []],
  ["ndots in strict", { strict: true, "dns-opt": [parseDnsOption("ndots:1")] }, []],
  ["cache and failover in strict", { strict: true, "switches.failover": true, "switches.cache": true }, []],
  [
    "special names and leave in strict",
    { strict: true, "switches.special-names": true, "forward.bogus-priv": true },
    [],
  ],
];

for (const [what, values, beginnings] of CONFLICTS) {
  test(`${what}: ${beginnings.length === 0 ? "no conflict" : "a conflict"}`, () => {
    const lines = linesOf(() => mergeSettings([flags(values)]));
    assert.equal(lines.length, beginnings.length, lines.join("\n"));
    for (const [index, beginning] of beginnings.entries()) assert.ok(lines[index]?.startsWith(beginning), lines[index]);
  });
}

test("a conflict between two layers is reported at the setting without effect", () => {
  const lines = linesOf(() => mergeSettings([flags({ strict: true }), file({ "switches.cache": true })]));
  assert.deepEqual(lines.length, 1);
  assert.match(lines[0] ?? "", /^f:1:1: switches\.cache: .* which strict turns off: turn failover on/);
});

test("changed keys are reported with the values before and after", () => {
  const before = mergeSettings([file({ ttl: 1_000, dns: [parseRoute("host")] })]);
  const now = mergeSettings([file({ ttl: 2_000, dns: [parseRoute("host")] }), environment({ strict: false })]);
  assert.deepEqual(changedKeys(before.origins, now.origins), ['ttl: "1s" -> "2s"']);
});

function flags(values: LayerValues): SettingsLayer {
  return { source: "flag", values, where: (key) => `--${key}` };
}

function environment(values: LayerValues): SettingsLayer {
  return { source: "environment", values, where: (key) => key };
}

function file(values: LayerValues): SettingsLayer {
  return { source: "file", values, where: (key) => `f:1:1: ${key}` };
}

function linesOf(act: () => void): readonly string[] {
  try {
    act();
    return [];
  } catch (error) {
    if (error instanceof BadSettings) return error.lines;
    throw error;
  }
}
