// Records that nobody can use, and more of them than there is room for: each is skipped and named, and costs no other.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { StoredWorld } from "./stored-world.ts";
import { ETCD_LIMITS } from "../../../src/features/etcd/limits.ts";

test("a record that cannot be read is skipped and named; the others of its name stay", () => {
  const bad: Readonly<Record<string, unknown>> = {
    "test/shop/x/json": "{",
    "test/shop/x/list": [],
    "test/shop/x/null": "null",
    "test/shop/x/number": "7",
    "test/shop/x/bytes": Buffer.from([0xff, 0xfe, 0]),
    "test/shop/x/empty": {},
    "test/shop/x/host": { host: 7 },
    "test/shop/x/name": { host: "not a name" },
    "test/shop/x/zone": { host: "fe80::1%eth0" },
    "test/shop/x/star": { host: "*.shop.test" },
    "test/shop/x/port": { host: "10.0.0.1", port: 65_536 },
    "test/shop/x/text-port": { host: "10.0.0.1", port: "80" },
    "test/shop/x/weight": { host: "10.0.0.1", weight: -1 },
    "test/shop/x/ttl": { host: "10.0.0.1", ttl: 1.5 },
    "test/shop/x/mail": { host: "10.0.0.1", mail: "yes" },
    "test/shop/x/long-text": { text: "x".repeat(4097) },
    "test/shop/x/million": Buffer.alloc(1024 * 1024, 0x20),
    "test/shop/x/UPPER": { host: "10.0.0.1" },
    "test/shop/x/": { host: "10.0.0.1" },
    "test/shop//x": { host: "10.0.0.1" },
    "test/shop/a.b": { host: "10.0.0.1" },
    [`test/shop/${"x".repeat(64)}`]: { host: "10.0.0.1" },
    [`test/shop/${"x/".repeat(300)}y`]: { host: "10.0.0.1" },
  };
  const world = new StoredWorld({ ...bad, "test/shop/x/good": { HOST: "10.0.0.2" } });
  assert.deepEqual(world.ask("x.shop.test"), [0, "A 10.0.0.2"]);
  const { skipped, problems, records } = world.names.report;
  assert.deepEqual([skipped, records], [Object.keys(bad).length, 1]);
  assert.deepEqual(problems[0], { key: "/skydns/test/shop/x/json", problem: "it is not valid JSON" });
  world.put("test/shop/x/json", { host: "10.0.0.3" });
  assert.equal(world.names.report.skipped, skipped - 1, "it was repaired");
  world.put("test/shop/x/good", "{");
  assert.deepEqual(world.ask("x.shop.test"), [0, "A 10.0.0.3"], "a record that turns bad does not stay");
});

test("a value that could not be read at all is a bad record", () => {
  const world = new StoredWorld({});
  world.names.put({ key: "/skydns/test/shop/big", value: undefined, lease: undefined });
  assert.match(world.names.report.problems[0]?.problem ?? "", /more than \d+ bytes/);
});

test("keys outside the prefix and outside the zones are no names", () => {
  const world = new StoredWorld({ "test/other/web": { host: "10.0.0.1" } });
  world.names.put({ key: "/other/test/shop/web", value: Buffer.from('{"host":"10.0.0.1"}'), lease: undefined });
  world.names.put({ key: "/skydnstest/shop/web", value: Buffer.from('{"host":"10.0.0.1"}'), lease: undefined });
  assert.deepEqual([world.ask("web.shop.test"), world.ask("web.other.test")], [[3], ["forwarded"]]);
  const { records, ignored, skipped } = world.names.report;
  assert.deepEqual([records, ignored, skipped], [0, 3, 0]);
});

test("what is not valid is read as well, so it counts: a list of nothing else ends, too", () => {
  const world = new StoredWorld({}, { recordsMax: 2_000 });
  world.names.begin();
  for (let index = 0; index < 1_999; index++) world.put(`test/shop/n${index}/r`, "{");
  assert.equal(world.names.after("k"), "k\0");
  world.put("test/shop/last/r", "{");
  assert.equal(world.names.after("k"), undefined);
});

test("records beyond the limit are left out and counted, and changes of the others go on", () => {
  const recordsMax = 100;
  const world = new StoredWorld({}, { recordsMax });
  world.names.begin();
  for (let index = 0; index < recordsMax + 5; index++) world.put(`test/shop/n${index}/r`, { host: "10.0.0.1" });
  assert.equal(world.names.after("/skydns/test/shop/n99/r"), undefined, "the list ends here");
  world.names.commit();
  const { records, refused, isCut } = world.names.report;
  assert.deepEqual([records, refused, isCut], [recordsMax, 5, true]);
  world.put("test/shop/n0/r", { host: "10.0.0.7" });
  assert.deepEqual(world.ask("n0.shop.test"), [0, "A 10.0.0.7"]);
  world.remove("test/shop/n1/r");
  world.put("test/shop/new", { host: "10.0.0.8" });
  assert.deepEqual(world.ask("new.shop.test"), [0, "A 10.0.0.8"], "there is room again");
});

test("an answer has so many records, whatever matches", () => {
  const values = Object.fromEntries(
    Array.from({ length: 600 }, (_, index) => [`test/shop/n${index}/x`, { host: `10.1.${index >> 8}.${index & 255}` }]),
  );
  const world = new StoredWorld(values);
  assert.equal(world.reply("x.*.shop.test")?.answers.length, ETCD_LIMITS.answerRecords);
});

test("while etcd is away the last known records are answered, with a short TTL, for a limited time", () => {
  let now = 1_000;
  const world = new StoredWorld({ "test/shop/a": { host: "10.0.0.1" } }, { now: () => now, staleSecondsMax: 60 });
  world.names.setCurrent(false);
  now += 60_000;
  assert.deepEqual(world.ask("a.shop.test"), [0, "A 10.0.0.1"]);
  assert.equal(world.reply("a.shop.test")?.answers[0]?.ttl, LIMITS.staleTtlSeconds);
  world.names.setCurrent(false);
  now += 1;
  assert.deepEqual([world.ask("a.shop.test"), world.ask("b.shop.test")], [[2], [2]], "neither answered nor denied");
  assert.deepEqual(world.ask("elsewhere.test"), ["forwarded"]);
  world.names.setCurrent(true);
  assert.deepEqual(world.ask("a.shop.test"), [0, "A 10.0.0.1"]);
});

test("before the first list nothing is answered and nothing denied", () => {
  const world = new StoredWorld(undefined);
  assert.deepEqual(world.ask("a.shop.test"), [2]);
});
