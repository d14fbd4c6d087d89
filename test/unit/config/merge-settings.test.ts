// Proves the precedence of flag, environment, file and default, the resulting settings, and the conflicts.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import type { SettingsLayer, LayerValues } from "../../../src/config/layers.ts";
import { changedKeys } from "../../../src/base/model/setting-origins.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import {
  DEFAULT_BEHAVIOUR,
  DEFAULT_FORWARDING,
  DOCKER_FORWARDING,
  STRICT_BEHAVIOUR,
} from "../../../src/base/model/behaviour.ts";
import { parseRoute } from "../../../src/base/model/server-text.ts";
import { UPSTREAM_DEFAULTS } from "../../../src/base/model/upstream-policy.ts";

test("without any layer: the defaults", () => {
  const settings = mergeSettings([]);
  assert.deepEqual(settings.behaviour, DEFAULT_BEHAVIOUR);
  assert.deepEqual(settings.upstream, UPSTREAM_DEFAULTS);
  assert.deepEqual(settings.routes, { everyone: [], networks: new Map() });
  assert.deepEqual([settings.isStrict, settings.logLevel, settings.only], [false, "info", []]);
  assert.deepEqual(settings.labels, { trustsImages: false, servers: "container" });
  assert.equal(settings.resolvConf, undefined);
  assert.ok(Object.values(settings.origins).every(({ source }) => source === "default"));
  assert.deepEqual(settings.origins["cache.size"], { value: "32MiB", source: "default" });
});

test("strict alone gives Docker's behaviour", () => {
  assert.deepEqual(mergeSettings([flags({ strict: true })]).behaviour, STRICT_BEHAVIOUR);
});

test("the modes differ in everything", () => {
  for (const key of Object.keys(DEFAULT_BEHAVIOUR) as (keyof typeof DEFAULT_BEHAVIOUR)[])
    assert.notEqual(DEFAULT_BEHAVIOUR[key], STRICT_BEHAVIOUR[key], key);
});

test("whose short name counts can be chosen in either mode", () => {
  const { behaviour } = mergeSettings([flags({ "own-project": false })]);
  assert.deepEqual(behaviour, { ...DEFAULT_BEHAVIOUR, prefersOwnProject: false });
  const strict = mergeSettings([flags({ strict: true, "own-project": true })]).behaviour;
  assert.deepEqual(strict, { ...STRICT_BEHAVIOUR, prefersOwnProject: true });
});

test("how servers are queried can be chosen in either mode", () => {
  const asDocker = mergeSettings([flags({ "forward.order": "docker" })]);
  assert.deepEqual(asDocker.behaviour, { ...DEFAULT_BEHAVIOUR, ...DOCKER_FORWARDING });
  assert.deepEqual(asDocker.origins["cache.size"], { value: "0", source: "default" });
  const strict = mergeSettings([flags({ strict: true, "forward.order": "adaptive" })]);
  assert.deepEqual(strict.behaviour, { ...STRICT_BEHAVIOUR, ...DEFAULT_FORWARDING });
  assert.deepEqual(strict.origins["cache.size"], { value: "32MiB", source: "default" });
});

for (const [order, forward] of [
  ["adaptive", { order: "adaptive", rotates: false }],
  ["rotate", { order: "adaptive", rotates: true }],
  ["sequential", { order: "sequential", rotates: false }],
  ["parallel", { order: "parallel", rotates: false }],
] as const) {
  test(`the order ${order}`, () => {
    const { order: chosen, rotates } = mergeSettings([flags({ "forward.order": order })]).upstream.forward;
    assert.deepEqual({ order: chosen, rotates }, forward);
  });
}

test("nothing is cached without memory for it, and nothing is served stale that may not be old", () => {
  const without = mergeSettings([flags({ "cache.size": 0 })]).behaviour;
  assert.deepEqual(without, { ...DEFAULT_BEHAVIOUR, caches: false });
  const fresh = mergeSettings([flags({ "cache.max-stale": 0 })]).behaviour;
  assert.deepEqual(fresh, { ...DEFAULT_BEHAVIOUR, servesStale: false });
});

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

test("a server by TLS is a mistake where servers are asked as Docker does", () => {
  const dns = [parseRoute("10.0.0.1"), parseRoute("/corp/tls://10.0.0.2#dns.test")];
  assert.deepEqual(mergeSettings([file({ dns })]).routes.everyone, dns);
  for (const as of [{ strict: true }, { "forward.order": "docker" } as const]) {
    assert.throws(() => mergeSettings([file({ ...as, dns })]), /has a server by TLS, which is not asked/);
    assert.throws(() => mergeSettings([file({ ...as, networks: new Map([["n1", dns]]) })]), /networks.*server by TLS/);
  }
});

test("a list replaces a list", () => {
  const [mine, theirs] = ["10.0.0.1", "10.0.0.2"].map((text) => [parseRoute(text)]);
  const { routes, origins } = mergeSettings([flags({ dns: mine }), file({ dns: theirs })]);
  assert.deepEqual(routes.everyone, mine);
  assert.deepEqual(origins["dns"], { value: ["10.0.0.1"], source: "flag" });
});

test("every key of forward and cache takes effect", () => {
  const { upstream } = mergeSettings([
    file({
      "forward.order": "parallel",
      "forward.budget": 2_500,
      "forward.tcp": true,
      "forward.max-concurrent": 10,
      "forward.missing-container": "fallback",
      "forward.tls-ca": "/etc/own-ca.pem",
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
      usesTcp: true,
      budgetMs: 2_500,
      queriesMax: 10,
      missingContainer: "fallback",
      tlsAuthorities: "/etc/own-ca.pem",
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

// Settings from flags, and the beginnings of the reported lines.
const CONFLICTS: readonly (readonly [string, LayerValues, readonly string[]])[] = [
  [
    "settings for forwarding in strict",
    { strict: true, "forward.budget": 1_000, "cache.size": 2 ** 20, "cache.max-stale": 86_400_000 },
    [
      "--forward.budget: has no effect with forward.order: docker, which strict sets: choose another forward.order or remove",
      "--cache.size: has no effect with forward.order: docker, which strict sets",
    ],
  ],
  [
    "a cache where servers are queried as Docker does",
    { "forward.order": "docker", "cache.size": 2 ** 20 },
    ["--cache.size: has no effect with forward.order: docker: choose another"],
  ],
  [
    "min-ttl over max-ttl",
    { "cache.min-ttl": 60_000, "cache.max-ttl": 5_000 },
    ["--cache.min-ttl: cache.min-ttl (1m) is"],
  ],
  ["min-ttl's default over nothing", { "cache.min-ttl": 60_000 }, []],
  ["an order of servers in strict", { strict: true, "forward.order": "parallel", "cache.size": 2 ** 20 }, []],
  ["names that stay in strict", { strict: true, "forward.domain-needed": true, "forward.bogus-priv": true }, []],
];

for (const [what, values, beginnings] of CONFLICTS) {
  test(`${what}: ${beginnings.length === 0 ? "no conflict" : "a conflict"}`, () => {
    const lines = linesOf(() => mergeSettings([flags(values)]));
    assert.equal(lines.length, beginnings.length, lines.join("\n"));
    for (const [index, beginning] of beginnings.entries()) assert.ok(lines[index]?.startsWith(beginning), lines[index]);
  });
}

test("a conflict between two layers is reported at the setting without effect", () => {
  const lines = linesOf(() => mergeSettings([flags({ strict: true }), file({ "cache.size": 2 ** 20 })]));
  assert.deepEqual(lines.length, 1);
  assert.match(lines[0] ?? "", /^f:1:1: cache\.size: .*, which strict sets: choose another forward\.order/);
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
