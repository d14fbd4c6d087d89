// Proves the settings from environment variables, and that all mistakes are reported at once.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import { mistypedVariables, readEnvironment } from "../../../src/config/layers.ts";
import { variableOf } from "../../../src/config/setting.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { MAP_HELP, SETTINGS } from "../../../src/config/keys.ts";
import { parseRoute } from "../../../src/base/model/server-text.ts";

test("without variables of dns11 nothing is set", () => {
  assert.deepEqual(readEnvironment({ PATH: "/bin", DNS11: "x" }).values, {});
});

test("an empty variable is ignored", () => {
  assert.deepEqual(readEnvironment({ DNS11_STRICT: "", DNS11_DNS: "", DNS11_TTL: "" }).values, {});
});

test("each variable is read", () => {
  const layer = readEnvironment({
    DNS11_STRICT: "Yes",
    DNS11_ONLY: "label=tier=a,b network=one",
    DNS11_TRUST_IMAGE_LABELS: "on",
    DNS11_LABEL_SERVERS: "any",
    DNS11_TTL: "1m",
    DNS11_DNS: "host, /corp.example/10.0.0.53\n10.0.0.54",
    DNS11_QUERIES_NAMES: "hidden",
    DNS11_LOG_LEVEL: "warn",
  });
  assert.equal(layer.source, "environment");
  assert.deepEqual(layer.values, {
    strict: true,
    only: [
      { kind: "label", key: "tier", value: "a,b" },
      { kind: "network", name: "one" },
    ],
    "trust-image-labels": true,
    "label-servers": "any",
    ttl: 60_000,
    dns: ["host", "/corp.example/10.0.0.53", "10.0.0.54"].map((text) => parseRoute(text)),
    "queries.names": "hidden",
    "log-level": "warn",
  });
  assert.equal(layer.where("label-servers"), "DNS11_LABEL_SERVERS");
});

for (const word of ["true", "1", "yes", "on", " TRUE "]) {
  test(`DNS11_STRICT="${word}" turns strict on`, () => {
    assert.equal(readEnvironment({ DNS11_STRICT: word }).values.strict, true);
  });
}

for (const word of ["false", "0", "no", "off"]) {
  test(`DNS11_STRICT="${word}" turns strict off`, () => {
    assert.equal(readEnvironment({ DNS11_STRICT: word }).values.strict, false);
  });
}

test("all mistakes are reported, with the name of the variable", () => {
  const wrong = {
    DNS11_STRICT: "maybe",
    DNS11_TTL: "long",
    DNS11_ONLY: "web",
    DNS11_DNS: "1.2.3",
    DNS11_LOG_LEVEL: "x",
  };
  assert.throws(
    () => readEnvironment(wrong),
    (error) => {
      assert.ok(error instanceof BadSettings);
      assert.deepEqual(
        error.lines.map((line) => line.split(":")[0]),
        ["DNS11_STRICT", "DNS11_ONLY", "DNS11_DNS", "DNS11_TTL", "DNS11_LOG_LEVEL"],
      );
      return true;
    },
  );
});

test("every setting that is no map has a variable of its own, named after its key", () => {
  const keys = Object.keys(mergeSettings([]).origins).filter((key) => !Object.hasOwn(MAP_HELP, key));
  assert.deepEqual(keys.toSorted(), Object.keys(SETTINGS).toSorted());
  const variables = Object.keys(SETTINGS).map((key) => variableOf(key));
  assert.equal(new Set(variables).size, variables.length);
  assert.equal(variableOf("cache.negative-ttl-without-soa"), "DNS11_CACHE_NEGATIVE_TTL_WITHOUT_SOA");
});

test("numbers, sizes, times and lists are read as in the file", () => {
  const { values } = readEnvironment({
    DNS11_METRICS_CONTAINERS: "40",
    DNS11_CACHE_SIZE: "64MiB",
    DNS11_CACHE_MAX_STALE: "1h",
    DNS11_FORWARD_DOMAIN_NEEDED: "no",
    DNS11_OWN_PROJECT: "off",
  });
  assert.deepEqual(values, {
    "metrics.containers": 40,
    "cache.size": 64 * 1024 ** 2,
    "cache.max-stale": 3_600_000,
    "forward.domain-needed": false,
    "own-project": false,
  });
  assert.throws(() => readEnvironment({ DNS11_METRICS_CONTAINERS: "4e1" }), {
    message: /DNS11_METRICS_CONTAINERS: invalid number "4e1": use a whole number from 0 to/,
  });
});

test("a variable that is nearly that of a setting is found, and others are left alone", () => {
  const others = {
    DNS11_TTL: "1",
    DNS11_STATE_DIR: "/run/x",
    DNS11_CONFIG: "",
    DNS11_PORT: "tcp://10.0.0.1:53",
    DNS11_SERVICE_HOST: "10.0.0.1",
    DNS11_PORT_53_UDP_ADDR: "10.0.0.1",
    CACHE_SIZ: "1",
  };
  assert.deepEqual(
    mistypedVariables({ ...others, DNS11_CAHCE_SIZE: "1MiB", DNS11_LOG_LEVE: "warn", DNS11_CONFG: "x" }),
    {
      DNS11_CAHCE_SIZE: "DNS11_CACHE_SIZE",
      DNS11_LOG_LEVE: "DNS11_LOG_LEVEL",
      DNS11_CONFG: "DNS11_CONFIG",
    },
  );
});
