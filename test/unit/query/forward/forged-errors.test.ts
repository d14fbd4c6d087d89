// Proves what a forged report that a server is unreachable does: the queries on that socket are sent again, and nothing else. The
// report is real here, because the socket leads to a closed port.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import type { Server } from "../../../../src/base/model/view.ts";
import type { Client } from "../../../../src/query/client/client.ts";
import { aClient, aQuery, aReplyTo, aView, upstreams } from "../../../support/scripted/builders.ts";
import { dialHere } from "../../support/loopback.ts";
import { QueryPath } from "../../support/query-path.ts";
import { type UdpScript, UdpUpstream, closedUdpServer } from "../../support/upstreams.ts";

const good: UdpScript = (query, reply) => reply(aReplyTo(query));

test("queries whose socket is said to lead nowhere are answered on another one, and the server stays up", async () => {
  await using server = new UdpUpstream(good);
  const path = new QueryPath();
  const client = await clientWithReports(server.server, (socket) => socket < LIMITS.upstreamSockets);
  const names = Array.from({ length: 50 }, (_, index) => `n${index}.test`);
  const replies = await Promise.all(names.map(async (name) => await path.query(client, aQuery({ name }))));
  assert.deepEqual(new Set(replies.map(({ rcode }) => rcode)), new Set([0]));
  assert.deepEqual(path.health, []);
});

test("a report again and again, with answers between, never marks the server down", async () => {
  await using server = new UdpUpstream(good, "host");
  const path = new QueryPath();
  const client = await clientWithReports(server.server, (socket) => socket % LIMITS.downAfterSocketErrors !== 0);
  for (let round = 0; round < 20; round++) {
    assert.equal((await path.query(client, aQuery({ name: `n${round}.test` }))).rcode, 0);
    // A socket that was answered on is used again, so there would be no further report.
    for (const { sockets } of path.pool.hostNameservers) if (round % 2 === 0) sockets.retire();
  }
  assert.deepEqual(path.health, []);
});

test("a server whose every socket leads nowhere is down at once, and the next one is queried", async () => {
  await using second = new UdpUpstream(good);
  const path = new QueryPath();
  const client = aClient(aView([], upstreams({ servers: [await closedUdpServer(), second.server] })), dialHere);
  assert.equal((await path.query(client, aQuery())).rcode, 0);
  assert.equal(path.health.length, 1);
  assert.match(path.health[0] ?? "", /^down: .*ECONNREFUSED/);
});

// Of its sockets, these lead to a closed port.
async function clientWithReports(server: Server, isClosed: (socket: number) => boolean): Promise<Client> {
  const closed = await closedUdpServer();
  let dialled = 0;
  return aClient(aView([], upstreams({ servers: [server] })), (to, type) =>
    dialHere(isClosed(dialled++) ? closed : to, type),
  );
}
