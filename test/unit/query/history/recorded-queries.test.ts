// Proves that each query through the answerer and the forwarder is recorded once, with its result, and that our own
// probes are not.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { LOCAL_SOURCE, type LocalSource } from "../../../../src/base/model/local-source.ts";
import { DENIED, type NameSearch, type VisibleNames } from "../../../../src/base/model/visible-names.ts";
import { probeName, probeQuery } from "../../../../src/base/model/probe-message.ts";
import { QueryHistories } from "../../../../src/query/history/query-histories.ts";
import type { QueryHistory } from "../../../../src/query/history/query-history.ts";
import { TYPE, aNetwork, aQuery, aRecord, aReplyTo, aView, aClient } from "../../../support/scripted/builders.ts";
import { QueryPath, clientWith, realNow } from "../../support/query-path.ts";
import { answerOnce } from "../../support/reply.ts";
import { UdpUpstream, closedUdpServer } from "../../support/upstreams.ts";

const NONCE = "0123456789abcdef01234567";

for (const [mode, behaviour] of Object.entries({ strict: STRICT_BEHAVIOUR, default: DEFAULT_BEHAVIOUR })) {
  test(`${mode}: a query that is answered at once is recorded with its rcode`, () => {
    const history = aHistory();
    const client = aClient(
      aView([aNetwork({ members: [{ names: ["web"], ipv4: "172.20.0.2" }] })]),
      undefined,
      history,
    );
    const context = { behaviour, client };
    answerOnce(aQuery({ name: "WEB" }), context);
    answerOnce(aQuery({ name: "web", type: TYPE.AAAA }), { ...context, isStream: true });
    answerOnce(aQuery({ counts: [2, 0, 0, 0] }), context);
    answerOnce(aQuery({ flags: 0x1000 }), context);
    answerOnce(aQuery({ name: "web", tail: Buffer.alloc(3), counts: [1, 1, 0, 0] }), context);
    assert.deepEqual(linesOf(history), [
      "WEB A 0 local udp",
      "web AAAA 0 local tcp",
      "- - 1 refused udp",
      "- - 4 refused udp",
      "web A 1 refused udp",
    ]);
    assert.deepEqual(
      [...history.since(0)].map(({ answers }) => answers),
      [1, 0, 0, 0, 0],
    );
  });
}

test("a local answer is recorded with its source, also one that says that there is no such name", () => {
  const history = aHistory();
  const records = { ttlSeconds: undefined, sets: new Map(), alias: undefined, containers: [] };
  const sources: readonly VisibleNames[] = [
    ...aView([aNetwork({ members: [{ names: ["web"], ipv4: "172.20.0.2" }] })]).names,
    aSource(LOCAL_SOURCE.zone, (search) => search.withRecords(records)),
    aSource(LOCAL_SOURCE.stopped, () => DENIED),
  ];
  const ask = (name: string, names: readonly VisibleNames[]): void => {
    answerOnce(aQuery({ name }), {
      behaviour: DEFAULT_BEHAVIOUR,
      client: aClient({ ...aView(), names }, undefined, history),
    });
  };
  for (const source of sources) ask("web", [source]);
  ask("web.invalid", []);
  assert.deepEqual(
    [...history.since(0)].map(({ source, upstream }) => [source, upstream]),
    ["network", "zone", "stopped", "rule"].map((source) => [source, null]),
  );
});

test("an unsupported EDNS version is recorded with the rcode that only an OPT can carry", () => {
  const history = aHistory();
  answerOnce(aQuery({ opt: { version: 1 } }), {
    behaviour: DEFAULT_BEHAVIOUR,
    client: aClient(aView(), undefined, history),
  });
  assert.deepEqual(linesOf(history), ["web A 16 refused udp"]);
});

test("our own probe is not recorded, also late and at another client of its namespace; a similar query is", () => {
  const history = aHistory();
  const client = aClient(aView(), undefined, history);
  client.expectProbe(NONCE);
  answerOnce(probeQuery(NONCE, 1), { behaviour: DEFAULT_BEHAVIOUR, client });
  assert.ok(client.probeSeen.udp);
  assert.deepEqual(linesOf(history), []);
  client.probeNonce = undefined;
  for (const late of [client, aClient(aView(), undefined, history)]) {
    for (const query of [probeQuery(NONCE, 1), aQuery({ name: probeName(NONCE), type: TYPE.A })])
      answerOnce(query, { behaviour: DEFAULT_BEHAVIOUR, client: late });
    assert.deepEqual([linesOf(history), late.counters.queries, late.counters.nxdomain], [[], 0, 0]);
  }
  answerOnce(probeQuery("another", 1), { behaviour: DEFAULT_BEHAVIOUR, client });
  assert.deepEqual(linesOf(history), ["another.dns11.invalid TXT 3 local udp"]);
});

test("a query that is neither answered nor forwarded is not recorded", () => {
  const history = aHistory();
  const context = { behaviour: DEFAULT_BEHAVIOUR, client: aClient(aView(), undefined, history) };
  assert.equal(answerOnce(aQuery({ flags: 0x8000 }), context).kind, "dropped");
  assert.equal(answerOnce(aQuery({ name: "example.org" }), context).kind, "deferred");
  assert.deepEqual(linesOf(history), []);
});

test("a forwarded and then a cached answer are distinguished, and the server is recorded", async () => {
  let nowMs = 0;
  const answer = aRecord({ owner: Buffer.of(0xc0, 12), type: TYPE.A, ttl: 60, data: Buffer.alloc(4) });
  await using upstream = new UdpUpstream((query, reply) => reply(aReplyTo(query, 0, [answer])));
  const queryPath = new QueryPath({ now: () => nowMs, cache: { staleSecondsMax: 3_600 } });
  const history = aHistory();
  const client = clientWith(history, upstream.server);
  const query = aQuery({ name: "example.org" });
  await queryPath.raw(client, query);
  nowMs += 10_000;
  await queryPath.raw(client, query, "tcp");
  const [forwarded, cached] = [...history.since(0)];
  assert.deepEqual(
    [forwarded, cached].map((each) => [each?.result, each?.ttl, each?.isStream]),
    [
      ["forwarded", 60, false],
      ["cached", 50, true],
    ],
  );
  const { address, port } = upstream.server;
  assert.deepEqual([forwarded?.upstream, cached?.upstream], [`${address}:${port}`, null]);
  assert.deepEqual([forwarded?.source, cached?.source], [null, null]);
});

test("a failure is recorded as one, also from the cache", async () => {
  const history = aHistory();
  const queryPath = new QueryPath();
  const client = clientWith(history, await closedUdpServer());
  for (let again = 0; again < 2; again++) await queryPath.raw(client, aQuery({ name: "example.org" }));
  assert.deepEqual(linesOf(history), ["example.org A 2 failed udp", "example.org A 2 failed udp"]);
});

test("a stale answer is recorded as one", async () => {
  let nowMs = 0;
  const answer = aRecord({ owner: Buffer.of(0xc0, 12), type: TYPE.A, ttl: 1, data: Buffer.alloc(4) });
  let fails = false;
  await using upstream = new UdpUpstream((query, reply) =>
    reply(fails ? aReplyTo(query, 2) : aReplyTo(query, 0, [answer])),
  );
  const queryPath = new QueryPath({ now: () => nowMs, cache: { staleSecondsMax: 3_600 } });
  const history = aHistory();
  const client = clientWith(history, upstream.server);
  await queryPath.raw(client, aQuery({ name: "example.org" }));
  fails = true;
  nowMs += 5_000;
  for (let again = 0; again < 2; again++) await queryPath.raw(client, aQuery({ name: "example.org" }));
  assert.deepEqual(linesOf(history), [
    "example.org A 0 forwarded udp",
    "example.org A 0 stale udp",
    "example.org A 0 stale udp",
  ]);
});

test("a query beyond the limit is recorded as refused", async () => {
  const history = aHistory();
  const queryPath = new QueryPath({ now: realNow, queriesMax: 0 });
  await using silent = new UdpUpstream(() => undefined);
  const client = clientWith(history, silent.server);
  // A container with few queries is not refused because of others.
  for (let i = 0; i < LIMITS.forwardQueriesAlways; i++)
    void queryPath.raw(client, aQuery({ name: `n${i}.example.org` }));
  await queryPath.raw(client, aQuery({ name: "example.org" }));
  assert.deepEqual(linesOf(history), ["example.org A 5 refused udp"]);
});

function aSource(kind: LocalSource, find: (search: NameSearch) => number): VisibleNames {
  return { places: [], kind, find: (_, search) => find(search), pointer: () => undefined };
}

function aHistory(): QueryHistory {
  return new QueryHistories("full").open("one");
}

const TYPE_WORDS = new Map<number, string>(Object.entries(TYPE).map(([word, type]) => [type, word]));

function linesOf(history: QueryHistory): string[] {
  return [...history.since(0)].map(({ name, type, rcode, result, isStream }) =>
    [name ?? "-", TYPE_WORDS.get(type) ?? "-", rcode, result, isStream ? "tcp" : "udp"].join(" "),
  );
}
