// Proves in which order and when servers are queried, with a clock that the test controls.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { ForwardPolicy } from "../../../../src/base/model/upstream-policy.ts";
import type { Server } from "../../../../src/base/model/view.ts";
import { aQuery, aReplyTo } from "../../../support/scripted/builders.ts";
import { QueryPath, clientOf } from "../../support/query-path.ts";
import { Clock } from "../../support/clock.ts";
import type { Reply } from "../../support/reply.ts";
import { TcpUpstream, UdpUpstream, type UdpScript, closedUdpServer, write } from "../../support/upstreams.ts";

const good: UdpScript = (query, reply) => reply(aReplyTo(query));
const silent: UdpScript = () => undefined;
const REFUSED: UdpScript = (query, reply) => reply(aReplyTo(query, 5));

test("the second server is queried, and the first again, when that has exceeded its usual time", async () => {
  await using first = new UdpUpstream((query, reply) => void (first.queries.length > 1 && good(query, reply)));
  await using second = new UdpUpstream(silent);
  using clock = new Clock();
  const reply = resolving(clock, [first.server, second.server]);
  await first.receives(1);
  clock.advance(LIMITS.hedgeMsFirst - 1);
  assert.deepEqual([first.queries.length, second.queries.length], [1, 0]);
  clock.advance(1);
  await second.receives(1);
  assert.equal((await reply).rcode, 0);
  clock.advance(5_000);
  assert.equal(clock.pending, 0, "the shared timer is not armed without a deadline");
});

test("a single server is retried with increasing intervals, until the budget ends", async () => {
  await using only = new UdpUpstream(silent);
  using clock = new Clock();
  const reply = resolving(clock, [only.server]);
  const sent = [];
  for (let ms = 0; ms < 4_390; ms += 10) {
    await new Promise((resolve) => setImmediate(resolve));
    sent.push(only.queries.length);
    clock.advance(10);
  }
  await only.receives(LIMITS.upstreamAttemptsPerServer);
  clock.advance(10);
  assert.equal((await reply).rcode, 2);
  assert.equal(only.queries.length, LIMITS.upstreamAttemptsPerServer);
  assert.ok((sent[60] ?? 0) <= 1 && (sent[150] ?? 0) <= 2);
});

test("in sequential order, each server gets its share of the budget, and health is ignored", async () => {
  await using first = new UdpUpstream(silent);
  await using second = new UdpUpstream(good);
  using clock = new Clock();
  const reply = resolving(clock, [first.server, second.server], { order: "sequential" });
  await first.receives(1);
  clock.advance(2_190);
  assert.equal(second.queries.length, 0);
  clock.advance(10);
  assert.equal((await reply).rcode, 0);
});

test("in parallel order, all servers are queried, and the first good reply wins", async () => {
  await using first = new UdpUpstream(silent);
  await using second = new UdpUpstream(REFUSED);
  await using third = new UdpUpstream(good);
  using clock = new Clock();
  const reply = resolving(clock, [first.server, second.server, third.server], { order: "parallel" });
  assert.equal((await reply).rcode, 0);
  assert.deepEqual([first.queries.length, second.queries.length], [1, 1]);
});

test("with rotation each query starts with another server", async () => {
  await using first = new UdpUpstream(good);
  await using second = new UdpUpstream(good);
  const queryPath = new QueryPath({ forward: { rotates: true } });
  const client = clientOf(first.server, second.server);
  for (let i = 0; i < 4; i++) await queryPath.query(client, aQuery({ name: `n${i}` }));
  assert.deepEqual([first.queries.length, second.queries.length], [2, 2]);
});

test("TCP is used from the start if so configured", async () => {
  await using stream = await TcpUpstream.start((query, socket) => write(socket, aReplyTo(query)));
  const reply = await new QueryPath({ forward: { usesTcp: true } }).query(clientOf(stream.server), aQuery());
  assert.equal(reply.rcode, 0);
});

test("the servers behind a stub are used only if the stub is unreachable", async () => {
  await using stub = new UdpUpstream(REFUSED);
  await using uplink = new UdpUpstream(good);
  const backup: Server = { ...uplink.server, isBackup: true };
  assert.equal((await new QueryPath().query(clientOf(stub.server, backup), aQuery())).rcode, 2);
  assert.equal(uplink.queries.length, 0);
  const client = clientOf(await closedUdpServer(), backup);
  assert.equal((await new QueryPath().query(client, aQuery())).rcode, 0);
});

test("those of the host behind Docker's resolver are used if it fails, for names with a dot", async () => {
  await using docker = new UdpUpstream(REFUSED);
  await using host = new UdpUpstream(good);
  const client = clientOf({ ...docker.server, from: "docker" }, { ...host.server, isBackup: true });
  const queryPath = new QueryPath();
  assert.equal((await queryPath.query(client, aQuery({ name: "db", type: 16 }))).rcode, 2);
  assert.equal(host.queries.length, 0);
  assert.equal((await queryPath.query(client, aQuery({ name: "example.org" }))).rcode, 0);
  assert.deepEqual([docker.queries.length, host.queries.length], [2, 1]);
});

for (const order of ["adaptive", "parallel", "sequential"] as const) {
  test(`in ${order} order, those behind Docker's resolver wait for its failure`, async () => {
    await using docker = new UdpUpstream(good);
    await using host = new UdpUpstream(good);
    const client = clientOf({ ...docker.server, from: "docker" }, { ...host.server, isBackup: true });
    const queryPath = new QueryPath({ forward: { order, rotates: order === "adaptive" } });
    for (const name of ["a.test", "b.test", "c.test"]) await queryPath.query(client, aQuery({ name }));
    assert.deepEqual([docker.queries.length, host.queries.length], [3, 0]);
  });
}

test("one that is down and only stands in for others gets no trial query while they answer", async () => {
  await using stub = new UdpUpstream(good);
  await using uplink = new UdpUpstream(good);
  const backup: Server = { ...uplink.server, isBackup: true };
  const client = clientOf(stub.server, backup);
  using clock = new Clock();
  const queryPath = new QueryPath({ now: clock.now });
  await queryPath.query(client, aQuery({ name: "a.test" }));
  queryPath.pool.find(client, backup)?.health.recordUnreachable(clock.now(), "ECONNREFUSED");
  clock.advance(LIMITS.trialMsFirst);
  assert.equal((await queryPath.query(client, aQuery({ name: "b.test" }))).rcode, 0);
  assert.equal(queryPath.pool.find(client, backup)?.health.checkIsDown(clock.now()), true);
  assert.equal(uplink.queries.length, 0);
});

test("a reply after the end of the budget is ignored", async () => {
  const late: (() => void)[] = [];
  await using upstream = new UdpUpstream((query, reply) => late.push(() => reply(aReplyTo(query, 3))));
  using clock = new Clock();
  const reply = resolving(clock, [upstream.server]);
  await upstream.receives(1);
  clock.advance(4_400);
  assert.equal((await reply).rcode, 2);
  for (const say1 of late) say1();
  await new Promise((resolve) => setImmediate(resolve));
});

async function resolving(
  clock: Clock,
  servers: readonly Server[],
  policy: Partial<ForwardPolicy> = {},
): Promise<Reply> {
  return await new QueryPath({ now: clock.now, forward: policy }).query(
    clientOf(...servers),
    aQuery({ name: "example.org" }),
  );
}
