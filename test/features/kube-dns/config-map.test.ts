// Proves what the keys of kube-dns's ConfigMap mean as settings.

import assert from "node:assert/strict";
import { test } from "node:test";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import { readConfigMap } from "../../../src/features/kube-dns/config-map.ts";
import { routeText } from "../../../src/base/model/server-text.ts";
import { LIMITS } from "../../../src/base/limits.ts";

function read(keys: Readonly<Record<string, string>>): readonly string[] | undefined {
  const { values } = readConfigMap(Object.entries(keys).map(([key, text]) => ({ key, path: `dir/${key}`, text })));
  return values.dns?.map((route) => routeText(route));
}

test("stub domains and nameservers, as the documents of Kubernetes have them", () => {
  const stubDomains = '{"acme.local": ["1.2.3.4"]}\n';
  const upstreamNameservers = '["8.8.8.8", "8.8.4.4"]\n';
  assert.deepEqual(read({ stubDomains, upstreamNameservers }), ["/acme.local/1.2.3.4", "8.8.8.8", "8.8.4.4"]);
  assert.deepEqual(read({ stubDomains }), ["/acme.local/1.2.3.4"], "the others stay as they are");
  assert.deepEqual(read({ upstreamNameservers: '["10.0.0.1:5353", "fd00::1"]' }), ["10.0.0.1:5353", "fd00::1"]);
  assert.equal(read({}), undefined);
  assert.equal(read({ stubDomains: "{}", upstreamNameservers: "[]" }), undefined);
});

for (const [key, text, problem] of [
  [
    "stubDomains",
    '{"acme.local": "1.2.3.4"}',
    /^dir\/stubDomains: invalid value "1\.2\.3\.4": use a list of addresses for "acme\.local"/,
  ],
  ["stubDomains", '{"acme.local": []}', /"acme\.local" has no nameserver/],
  ["stubDomains", '{"": ["1.2.3.4"]}', /is not a domain/],
  ["stubDomains", '{"*.acme.local": ["1.2.3.4"]}', /is not a domain/],
  ["stubDomains", "[]", /use a map of domains/],
  ["stubDomains", "acme.local: 1.2.3.4", /is not valid JSON/],
  ["upstreamNameservers", '["1.1.1.1","1.1.1.2","1.1.1.3","1.1.1.4"]', /has 4 nameservers: use at most 3/],
  ["upstreamNameservers", '["dns.example"]', /is not the address of a nameserver/],
  ["upstreamNameservers", '["container:web"]', /is not the address of a nameserver/],
  ["upstreamNameservers", '["10.0.0.1:0"]', /invalid port/],
  ["federations", "{}", /federations are not supported/],
  ["Corefile", ".:53 {}", /unknown key of a kube-dns ConfigMap/],
] as const) {
  test(`a mistake: ${key} ${text}`, () =>
    assert.throws(
      () => read({ [key]: text }),
      (error) => error instanceof BadSettings && problem.test(error.lines[0] ?? ""),
    ));
}

test("the number of stub domains is bounded", () => {
  const many = Object.fromEntries(
    Array.from({ length: LIMITS.dnsmasqDomains + 1 }, (_, n) => [`n${n}.test`, ["10.0.0.1"]]),
  );
  assert.throws(() => read({ stubDomains: JSON.stringify(many) }), /domains: use at most/);
});
