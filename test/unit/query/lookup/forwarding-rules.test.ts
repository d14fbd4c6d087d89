// Proves which names are not forwarded and by which rule, and that what reports are told is what a query gets.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { LOCAL_ONLY_DEFAULTS } from "../../../../src/base/model/upstream-policy.ts";
import type { Upstreams } from "../../../../src/base/model/view.ts";
import { Answerer } from "../../../../src/query/answer.ts";
import { ForwardingRules } from "../../../../src/query/lookup/forwarding-rules.ts";
import { DEFERRED, SLOT_BYTES } from "../../../../src/query/ports.ts";
import { TYPE, aClient, aQuery, aRoute, aView } from "../../../support/scripted/builders.ts";

const SERVER = { from: "host", address: "192.0.2.53", port: 53 } as const;
const EVERYTHING = aRoute("", [SERVER]);
const ROUTES: Upstreams = {
  routes: [aRoute("corp.localhost", [SERVER]), aRoute("lan", "local"), EVERYTHING],
  isNdotsSet: false,
};
const NDOTS: Upstreams = { ...ROUTES, isNdotsSet: true };
const ALL = { keepsDotless: true, keepsPrivateReverse: true };

const CASES = [
  ["example.org", TYPE.A, undefined],
  ["localhost", TYPE.A, "localhost"],
  ["A.LocalHost", TYPE.MX, "localhost"],
  ["notlocalhost", TYPE.MX, undefined],
  ["a.corp.localhost", TYPE.A, undefined],
  ["x.onion", TYPE.A, "nonexistent"],
  ["INVALID", TYPE.TXT, "nonexistent"],
  ["_dns.resolver.arpa", 64, "resolver"],
  ["1.0.0.127.in-addr.arpa", TYPE.PTR, "loopback-reverse"],
  ["2.0.0.127.in-addr.arpa", TYPE.PTR, undefined],
  ["printer.lan", TYPE.A, "local"],
  ["lan", TYPE.A, "local"],
  ["single", TYPE.A, undefined],
  ["a\\032b.lan", TYPE.A, "local"],
  [".", TYPE.NS, undefined],
] as const;

test("the longest domain has the route; rules apply where no domain has one", () => {
  const rules = new ForwardingRules(DEFAULT_BEHAVIOUR, LOCAL_ONLY_DEFAULTS);
  for (const [name, type, rule] of CASES) assert.equal(rules.forwardingOf(name, type, ROUTES)?.rule, rule, name);
  assert.equal(rules.forwardingOf("x.CORP.localhost.", TYPE.A, ROUTES)?.route, ROUTES.routes[0]);
  assert.equal(rules.forwardingOf("xcorp.example", TYPE.A, ROUTES)?.route, EVERYTHING);
  assert.equal(rules.forwardingOf(`${"a".repeat(64)}.lan`, TYPE.A, ROUTES), undefined, "no query can have it");
});

test("special names have their meaning also where no name exists outside, or ndots is set", () => {
  const rules = new ForwardingRules(DEFAULT_BEHAVIOUR, LOCAL_ONLY_DEFAULTS);
  const nowhere: Upstreams = { routes: [aRoute("", "local")], isNdotsSet: true };
  for (const [name, rule] of [
    ["localhost", "localhost"],
    ["app.localhost", "localhost"],
    ["single", "local"],
    ["example.org", "local"],
  ] as const)
    assert.equal(rules.forwardingOf(name, TYPE.A, nowhere)?.rule, rule, name);
});

test("strict: special names are forwarded", () => {
  const rules = new ForwardingRules(STRICT_BEHAVIOUR, LOCAL_ONLY_DEFAULTS);
  for (const name of ["localhost", "x.onion"]) assert.equal(rules.forwardingOf(name, TYPE.A, ROUTES)?.rule, undefined);
});

test("names without a dot and reverse names of private addresses are kept where that is set", () => {
  const rules = new ForwardingRules(DEFAULT_BEHAVIOUR, ALL);
  for (const [name, type, rule] of [
    ["single", TYPE.AAAA, "no-dot"],
    ["single", TYPE.TXT, undefined],
    ["2.0.0.127.in-addr.arpa", TYPE.PTR, "private-reverse"],
    ["9.2.0.192.in-addr.arpa", TYPE.PTR, undefined],
  ] as const) {
    assert.equal(rules.forwardingOf(name, type, ROUTES)?.rule, rule, name);
  }
  assert.equal(rules.forwardingOf("single", TYPE.A, NDOTS)?.rule, "ndots");
  assert.equal(rules.forwardingOf("single", TYPE.TXT, NDOTS)?.rule, undefined);
});

test("what reports are told is what a query gets", () => {
  const block = Buffer.alloc(SLOT_BYTES);
  for (const behaviour of [DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR]) {
    for (const localOnly of [LOCAL_ONLY_DEFAULTS, ALL]) {
      const answerer = new Answerer(behaviour, { localOnly });
      for (const upstreams of [ROUTES, NDOTS]) {
        const client = aClient(aView([], upstreams));
        for (const [name, type] of CASES.filter(([each]) => !each.includes("\\"))) {
          const query = aQuery({ name, type });
          query.copy(block);
          const isForwarded = answerer.answer(client, block, 0, query.length, false) === DEFERRED;
          const rule = answerer.rules.forwardingOf(name, type, upstreams)?.rule;
          assert.equal(rule === undefined, isForwarded, `${name}: ${rule ?? "forwarded"}`);
        }
      }
    }
  }
});
