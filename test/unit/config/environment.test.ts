// Proves the settings from environment variables, and that all mistakes are reported at once.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import { readEnvironment } from "../../../src/config/environment.ts";
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
    DNS11_DNS_OPT: "ndots:1 rotate",
    DNS11_KIND: "auto, name=a*",
    DNS11_KIND_IP: "gateway",
    DNS11_KIND_MODE: "loopback",
    DNS11_QUERY_NAMES: "hidden",
    DNS11_QUERY_LOG: "on",
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
    "dns-opt": [
      { text: "ndots:1", kind: "ndots", number: 1 },
      { text: "rotate", kind: "rotate", number: undefined },
    ],
    "kind.nodes": [{ kind: "auto" }, { kind: "name", pattern: "a*" }],
    "kind.ip": "gateway",
    "kind.mode": "loopback",
    "queries.names": "hidden",
    "queries.log": true,
    "log-level": "warn",
  });
  assert.equal(layer.where("dns-opt"), "DNS11_DNS_OPT");
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
        ["DNS11_STRICT", "DNS11_ONLY", "DNS11_TTL", "DNS11_DNS", "DNS11_LOG_LEVEL"],
      );
      return true;
    },
  );
});

test("a retired variable is refused with the one to use instead", () => {
  assert.throws(() => readEnvironment({ DNS11_KIND_WAY: "loopback", DNS11_RULES: "nft" }), {
    message: /DNS11_KIND_WAY: is now DNS11_KIND_MODE\nDNS11_RULES: is now DNS11_RULE_BACKEND/,
  });
});
