// Proves when a connection tracking table counts as full: it takes 262,144 entries to fill a real one.

import assert from "node:assert/strict";
import { test } from "node:test";

import { roomFinding } from "../../../../src/doctor/checks/namespace-check.ts";

const MAX = 262_144;

test("a table with room is well, one that is nearly full is a warning, and a full one a problem that says what to do", () => {
  const states = [0, 0.5, 0.89, 0.91, 0.98, 0.995, 1].map((share) => roomFinding(Math.round(share * MAX), MAX).state);
  assert.deepEqual(states, ["ok", "ok", "ok", "warning", "warning", "problem", "problem"]);
  const { detail, remedy } = roomFinding(MAX, MAX);
  assert.match(detail, /^262144 of 262144 entries: the table is full, so new connections and DNS queries are dropped$/);
  assert.match(remedy ?? "", /conntrack -L.*sysctl -w net\.netfilter\.nf_conntrack_max=524288$/);
});

test("without connection tracking there is nothing to fill", () => {
  assert.deepEqual([roomFinding(undefined, MAX).state, roomFinding(1, undefined).state], ["ok", "ok"]);
});
