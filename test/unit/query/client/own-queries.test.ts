// Proves that only an announced source port makes a query dns11's own, and only once: so a container cannot hide its queries.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { OwnQueries } from "../../../../src/query/client/client.ts";

function rig(): { own: OwnQueries; pass: (ms: number) => void } {
  let now = 0;
  return { own: new OwnQueries(() => now), pass: (ms) => void (now += ms) };
}

test("an announced port is good for one query over its own transport", () => {
  const { own } = rig();
  assert.equal(own.take(false, 4000), false);
  own.announce(false, 4000);
  assert.equal(own.areExpected, true);
  assert.equal(own.take(true, 4000), false, "another transport");
  assert.equal(own.take(false, 4001), false, "another port");
  assert.equal(own.take(false, 4000), true);
  assert.equal(own.take(false, 4000), false, "used up");
  assert.equal(own.areExpected, false);
});

test("an announcement expires", () => {
  const { own, pass } = rig();
  own.announce(true, 4000);
  pass(LIMITS.ownQueryMs);
  assert.equal(own.take(true, 4000), false);
});

test("announcements are bounded, and expired ones make room", () => {
  const { own, pass } = rig();
  for (let port = 1; port <= LIMITS.ownQueries + 1; port++) own.announce(false, port);
  assert.equal(own.take(false, LIMITS.ownQueries + 1), false);
  assert.equal(own.take(false, 1), true);
  pass(LIMITS.ownQueryMs);
  own.announce(false, 9999);
  assert.equal(own.take(false, 9999), true);
});
