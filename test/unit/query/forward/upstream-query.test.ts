// Proves in which order servers are asked, and when: with a clock that goes on when it is told.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { ForwardPolicy } from "../../../../src/base/model/upstream-policy.ts";
import type { Server } from "../../../../src/base/model/view.ts";
import { aQuery, aReplyTo } from "../../../support/scripted/builders.ts";
import { Asking, askerOf } from "../../support/asking.ts";
import { Clock } from "../../support/clock.ts";
import type { Reply } from "../../support/reply.ts";
import { TcpUpstream, UdpUpstream, type UdpScript, closedUdpServer, say } from "../../support/upstreams.ts";

const good: UdpScript = (query, reply) => reply(aReplyTo(query));
const silent: UdpScript = () => undefined;
const REFUSED: UdpScript = (query, reply) => reply(aReplyTo(query, 5));

test("the second server is asked when the first has been silent for longer than it usually is", async () => {
  await using first = new UdpUpstream(silent);
  await using second = new UdpUpstream(good);
  using clock = new Clock();
  const reply = flying(clock, [first.server, second.server]);
  await first.asked(1);
  clock.advance(LIMITS.hedgeMsFirst - 1);
  assert.equal(second.queries.length, 0);
  clock.advance(1);
  assert.equal((await reply).rcode, 0);
  clock.advance(5_000);
  assert.equal(clock.pending, 0, "the timer that all share is not armed for nobody");
});

test("a single server is asked again, less and less often, until the budget is over", async () => {
  await using only = new UdpUpstream(silent);
  using clock = new Clock();
  const reply = flying(clock, [only.server]);
  const asked = [];
  for (let ms = 0; ms < 4_390; ms += 10) {
    await new Promise((resolve) => setImmediate(resolve));
    asked.push(only.queries.length);
    clock.advance(10);
  }
  await only.asked(LIMITS.upstreamAttemptsPerServer);
  clock.advance(10);
  assert.equal((await reply).rcode, 2);
  assert.equal(only.queries.length, LIMITS.upstreamAttemptsPerServer);
  assert.ok((asked[60] ?? 0) <= 1 && (asked[150] ?? 0) <= 2);
});

test("strictly in order, the next one waits for its share of the budget, and health counts for nothing", async () => {
  await using first = new UdpUpstream(silent);
  await using second = new UdpUpstream(good);
  using clock = new Clock();
  const reply = flying(clock, [first.server, second.server], { order: "sequential" });
  await first.asked(1);
  clock.advance(2_190);
  assert.equal(second.queries.length, 0);
  clock.advance(10);
  assert.equal((await reply).rcode, 0);
});

test("in a race all are asked, and the first good reply wins", async () => {
  await using first = new UdpUpstream(silent);
  await using second = new UdpUpstream(REFUSED);
  await using third = new UdpUpstream(good);
  using clock = new Clock();
  const reply = flying(clock, [first.server, second.server, third.server], { order: "parallel" });
  assert.equal((await reply).rcode, 0);
  assert.deepEqual([first.queries.length, second.queries.length], [1, 1]);
});

test("in rotation each query begins with another server", async () => {
  await using first = new UdpUpstream(good);
  await using second = new UdpUpstream(good);
  const asking = new Asking({ ask: { rotates: true } });
  const client = askerOf(first.server, second.server);
  for (let i = 0; i < 4; i++) await asking.ask(client, aQuery({ name: `n${i}` }));
  assert.deepEqual([first.queries.length, second.queries.length], [2, 2]);
});

test("by TCP where settings say so, from the start", async () => {
  await using stream = await TcpUpstream.start((query, socket) => say(socket, aReplyTo(query)));
  const reply = await new Asking({ ask: { usesTcp: true } }).ask(askerOf(stream.server), aQuery());
  assert.equal(reply.rcode, 0);
});

test("what stands behind a stub is asked only when nobody is at the stub", async () => {
  await using stub = new UdpUpstream(REFUSED);
  await using uplink = new UdpUpstream(good);
  const backup: Server = { ...uplink.server, isBackup: true };
  assert.equal((await new Asking().ask(askerOf(stub.server, backup), aQuery())).rcode, 2);
  assert.equal(uplink.queries.length, 0);
  const client = askerOf(await closedUdpServer(), backup);
  assert.equal((await new Asking().ask(client, aQuery())).rcode, 0);
});

test("an answer that comes after the end of the budget is nobody's", async () => {
  const late: (() => void)[] = [];
  await using upstream = new UdpUpstream((query, reply) => late.push(() => reply(aReplyTo(query, 3))));
  using clock = new Clock();
  const reply = flying(clock, [upstream.server]);
  await upstream.asked(1);
  clock.advance(4_400);
  assert.equal((await reply).rcode, 2);
  for (const say1 of late) say1();
  await new Promise((resolve) => setImmediate(resolve));
});

async function flying(clock: Clock, servers: readonly Server[], ask: Partial<ForwardPolicy> = {}): Promise<Reply> {
  return await new Asking({ now: clock.now, ask }).ask(askerOf(...servers), aQuery({ name: "example.org" }));
}
