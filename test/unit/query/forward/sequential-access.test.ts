// Proves which servers a container may use, and how many at once: the host's servers, its slots, Docker's embedded DNS.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { Server } from "../../../../src/base/model/view.ts";
import { aQuery, aReplyTo, aView, aClient, upstreams } from "../../../support/scripted/builders.ts";
import { Clock } from "../../support/clock.ts";
import { Forwarding } from "../../support/forwarding.ts";
import { dialHere } from "../../support/loopback.ts";
import { readReply } from "../../support/reply.ts";
import { UdpUpstream } from "../../support/upstreams.ts";

const DOCKER: Server = { from: "docker", address: "127.0.0.11", port: 53 };
const QUERY = aQuery({ name: "example.org" });

test("a query that gets no slot in time is refused, without RA", async () => {
  using clock = new Clock();
  await using upstream = new UdpUpstream(assert.fail);
  const client = aClient(aView([], upstreams({ servers: [upstream.server] })), dialHere);
  for (let count = 0; count < LIMITS.forwardSlots; count++) client.slots.take(() => undefined, assert.fail);
  const forwarding = new Forwarding({ query: QUERY, client });
  await Promise.resolve();
  clock.advance(LIMITS.forwardWaitMs);
  const { rcode, flags, question } = readReply(await forwarding.reply);
  assert.deepEqual([rcode, flags, question?.name], [5, "qr rd", "example.org"]);
  const { refused, failed } = client.counters;
  assert.deepEqual([refused, failed, forwarding.forwarder.inFlight], [1, 1, 0]);
  assert.equal(client.slots.taken, LIMITS.forwardSlots);
});

test("a query that waits for a slot continues when one is free", async () => {
  await using upstream = new UdpUpstream((query, reply) => reply(aReplyTo(query)));
  const client = aClient(aView([], upstreams({ servers: [upstream.server] })), dialHere);
  for (let count = 0; count < LIMITS.forwardSlots; count++) client.slots.take(() => undefined, assert.fail);
  const forwarding = new Forwarding({ query: QUERY, client });
  await Promise.resolve();
  client.slots.release();
  assert.deepEqual(await forwarding.reply, aReplyTo(QUERY));
  assert.equal(client.slots.taken, LIMITS.forwardSlots - 1);
});

test("more queries wait than there are slots, and all are answered although every server fails at once", async () => {
  const client = aClient(
    aView([], upstreams({ servers: [{ from: "container", address: "nowhere", port: 1 }] })),
    dialHere,
  );
  const all = Array.from({ length: LIMITS.forwardSlots * 2 }, () => new Forwarding({ query: QUERY, client }));
  const rcodes = await Promise.all(all.map(async ({ reply }) => readReply(await reply).rcode));
  assert.deepEqual(new Set(rcodes), new Set([2]));
  assert.equal(client.slots.taken, 0);
});

test("each server query holds one slot while it is in flight", async () => {
  using clock = new Clock();
  await using first = new UdpUpstream(() => undefined);
  await using second = new UdpUpstream((query, reply) => reply(aReplyTo(query)));
  const forwarding = new Forwarding({ query: QUERY, servers: [first.server, second.server] });
  await first.receives(1);
  assert.deepEqual([forwarding.client.slots.taken, forwarding.forwarder.inFlight], [1, 1]);
  clock.advance(LIMITS.forwardServerMs);
  assert.equal(forwarding.client.slots.taken, 1);
  await forwarding.reply;
  assert.deepEqual([forwarding.client.slots.taken, forwarding.forwarder.inFlight], [0, 0]);
});

test("Docker's embedded DNS gets the time that it needs to try three servers", async () => {
  using clock = new Clock();
  await using docker = new UdpUpstream(() => undefined);
  const dialled: Server[] = [];
  const client = aClient(aView([], upstreams({ servers: [DOCKER] })), (server, type) => {
    dialled.push(server);
    return dialHere(docker.server, type);
  });
  const forwarding = new Forwarding({ query: QUERY, client });
  await docker.receives(1);
  assert.deepEqual(dialled, [DOCKER]);
  clock.advance(LIMITS.forwardDockerMs - 1);
  assert.deepEqual(forwarding.reasons, []);
  clock.advance(1);
  assert.equal(readReply(await forwarding.reply).rcode, 2);
  assert.deepEqual(forwarding.reasons, ["timed out"]);
});
