// The record of a job: what is counted, what remains of containers that are gone, and that no container can fill it.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  CONTAINERS_MAX,
  FAILURES_MAX,
  NAMES_MAX,
  PROBLEMS_MAX,
  REFUSALS_MAX,
  REFUSALS_OF_ONE_MAX,
  Tally,
} from "../../../src/action/tally.ts";
import type { FailureReport } from "../../../src/api/failures.ts";
import type { PolicyContainer, PolicyRefusal } from "../../../src/api/policies.ts";
import type { QueryReport } from "../../../src/api/queries.ts";

function query(container: string, seq: number, name: string | null, more: Partial<QueryReport> = {}): QueryReport {
  return {
    container,
    seq,
    time: "2026-01-01T00:00:00Z",
    name,
    type: "A",
    rcode: "NOERROR",
    answers: 1,
    addresses: ["192.0.2.1"],
    ttl: 5,
    transport: "udp",
    result: "local",
    source: "network",
    upstream: null,
    ms: 0,
    ...more,
  };
}

function failure(containerId: string, name: string, count = 1): FailureReport {
  return {
    container: "web",
    containerId,
    isRunning: true,
    project: null,
    service: null,
    name,
    type: "A",
    result: "NXDOMAIN",
    count,
    perMinute: 1,
    first: "2026-01-01T00:00:00Z",
    last: "2026-01-01T00:00:01Z",
    lastSuccess: null,
    isContainerName: true,
    cause: null,
  };
}

test("queries are counted by container and name, with the last answer", () => {
  const tally = new Tally();
  const owners = [{ address: "192.0.2.1", container: "db-1", network: "n", project: null, service: null }];
  tally.addQuery(query("web", 1, "db", { rcode: "NXDOMAIN", answers: 0, addresses: [] }));
  tally.addQuery(query("web", 2, "db", { owners }));
  tally.addQuery(query("web", 3, "example.org", { upstream: "host(192.0.2.53)" }));
  tally.addQuery(query("web", 4, null, { answers: 0, addresses: [] }));
  assert.deepEqual(tally.record(null).asked, [
    {
      container: "web",
      names: [
        { name: "db", queries: 2, failed: 1, answer: "db-1" },
        { name: "example.org", queries: 1, failed: 0, answer: "192.0.2.1 from host(192.0.2.53)" },
        { name: null, queries: 1, failed: 0, answer: "no records" },
      ],
      others: 0,
    },
  ]);
});

test("what the stream has brought is not counted again at the end", () => {
  const tally = new Tally();
  tally.addQuery(query("web", 1, "db"));
  tally.addQuery(query("web", 2, "db"));
  for (const seq of [1, 2, 3]) tally.addRecorded(query("web", seq, "db"));
  tally.addRecorded(query("late", 1, "db"));
  assert.deepEqual(
    tally.record(null).asked.map(({ container, names }) => [container, names[0]?.queries]),
    [
      ["web", 3],
      ["late", 1],
    ],
  );
});

test("the cause of a failure stays, although its container is gone", () => {
  const tally = new Tally();
  const cause = { code: "other-network" as const, sentence: "why", fix: null, lastingFix: null, isBreaking: true };
  tally.addFailure({ ...failure("id", "db"), cause });
  tally.addFailure({ ...failure("id", "db", 2), isRunning: false });
  const [kept] = tally.record(null).failures;
  assert.deepEqual([kept?.count, kept?.isRunning, kept?.cause], [2, false, cause]);
});

test("each bound counts what it leaves out", () => {
  const tally = new Tally();
  for (let at = 0; at < NAMES_MAX + 7; at += 1) tally.addQuery(query("flood", at + 1, `${at}.test`));
  for (let at = 1; at < CONTAINERS_MAX + 5; at += 1) tally.addQuery(query(`c${at}`, 1, "db"));
  tally.addQuery(query("long", 1, "x".repeat(100_000)));
  tally.addMissed(3);
  for (let at = 0; at < FAILURES_MAX + 2; at += 1) tally.addFailure(failure("id", `${at}.test`));
  // It has happened again, or is read again at the end.
  tally.addFailure(failure("id", `${FAILURES_MAX}.test`, 2));
  // A known one is never left out.
  tally.addFailure(failure("id", "0.test", 9));
  const record = tally.record("dns11 stopped");
  assert.equal(record.asked.length, CONTAINERS_MAX);
  assert.equal(record.asked[0]?.names.length, NAMES_MAX);
  assert.equal(record.asked[0]?.others, 7);
  assert.equal(record.ofOtherContainers, 6);
  assert.equal(record.missed, 3);
  assert.equal(record.failures.length, FAILURES_MAX);
  assert.equal(record.omittedFailures, 2);
  assert.equal(record.failures[0]?.count, 9);
  assert.equal(record.endedEarly, "dns11 stopped");
});

test("a name is never longer than one of DNS can be", () => {
  const tally = new Tally();
  tally.addQuery(query("web", 1, "x".repeat(100_000)));
  assert.equal(tally.record(null).asked[0]?.names[0]?.name?.length, 1020);
});

function refusal(more: Partial<PolicyRefusal> = {}): PolicyRefusal {
  return {
    number: 1,
    time: "2026-01-01T00:00:00Z",
    last: "2026-01-01T00:00:01Z",
    count: 1,
    container: "agent",
    containerId: "id",
    project: null,
    service: null,
    name: "evil.example",
    type: "A",
    verdict: "refused",
    policy: "ci",
    mode: "enforce",
    reason: "not-allowed",
    because: "policy ci: no rule allows it (p.yaml:3:3)",
    ...more,
  };
}

test("an entry of the log of policies that comes again is counted once, and one that follows it is added", () => {
  const tally = new Tally();
  tally.addRefusal(refusal());
  tally.addRefusal(refusal({ count: 4 }));
  tally.addRefusal(refusal({ number: 7, count: 2 }));
  // Read again at the end.
  tally.addRefusal(refusal({ number: 7, count: 3, container: "id" }));
  tally.addRefusal(refusal({ name: null, verdict: "would-refuse" }));
  // By a failure the name of a container is known that is gone.
  tally.addFailure({ ...failure("id", "evil.example"), container: "agent-1" });
  const found = tally
    .record(null)
    .refused.map(({ container, name, isEnforced, count }) => [...[container, name, isEnforced, count]]);
  assert.deepEqual(found, [
    ["agent-1", "evil.example", true, 7],
    ["agent-1", null, false, 1],
  ]);
});

test("connections that were refused, and what does not hold, are those at the end", () => {
  const tally = new Tally();
  const moment = { isClosed: true, because: "" };
  const container: PolicyContainer = {
    container: "agent",
    containerId: "id",
    project: null,
    service: null,
    policies: [{ name: "ci", mode: "audit", by: "network=n", where: "p.yaml:3:3" }],
    mode: "audit",
    notServed: null,
    refused: 0,
    wouldRefuse: 1,
    addresses: { state: "enforced", reason: null, open: 1, refused: ["192.0.2.1:443/tcp"] },
    names: [],
    ...{ boot: moment, birth: moment, life: moment, death: moment },
    grants: [],
    problems: Array.from({ length: PROBLEMS_MAX + 1 }, () => "why"),
  };
  tally.addPolicies([container]);
  const { isPoliced, refused, problems } = tally.record(null);
  assert.equal(isPoliced, true);
  assert.deepEqual(refused, [
    {
      container: "agent",
      name: "192.0.2.1:443/tcp",
      isConnection: true,
      policy: "ci",
      isEnforced: false,
      reason: "not-allowed",
      because: "",
      count: null,
    },
  ]);
  assert.equal(problems.length, PROBLEMS_MAX);
});

test("no container fills the record of refusals, and displaces none of another one", () => {
  const tally = new Tally();
  for (let at = 0; at < REFUSALS_OF_ONE_MAX + 5; at += 1)
    tally.addRefusal(refusal({ number: at + 1, name: `${at}.evil.example`, containerId: "flood" }));
  tally.addRefusal(refusal({ number: 500, name: `${REFUSALS_OF_ONE_MAX}.evil.example`, containerId: "flood" }));
  tally.addRefusal(refusal({ number: 9_000, name: "x".repeat(100_000) }));
  for (let at = 0; at < REFUSALS_MAX; at += 1)
    tally.addRefusal(refusal({ number: 10_000 + at, containerId: `c${at}` }));
  const { refused, omittedRefusals } = tally.record(null);
  assert.equal(refused.length, REFUSALS_MAX);
  assert.equal(omittedRefusals, 5 + REFUSALS_OF_ONE_MAX + 1);
  assert.equal(refused[REFUSALS_OF_ONE_MAX]?.name?.length, 1020);
});
