// Proves that what waits at a server is shared: a container with many queries there waits in its own queue, and others pass.

import assert from "node:assert/strict";
import { test } from "node:test";

import { LIMITS } from "../../../../src/base/limits.ts";
import { aQuery, aReplyTo } from "../../../support/scripted/builders.ts";
import { QueryPath, clientOf } from "../../support/query-path.ts";
import { Clock } from "../../support/clock.ts";
import type { Reply } from "../../support/reply.ts";
import { UdpUpstream } from "../../support/upstreams.ts";

const { first } = LIMITS.serverWindow;

test("the queries of a flood wait here, and those of another container go to the server at once", async () => {
  await using server = new HeldServer();
  const { flood } = flooded(server);
  await server.receives(first);
  await server.settled();
  assert.equal(server.queries.length, first);
  const neighbour = server.path.query(clientOf(server.server), aQuery({ name: "neighbour.test" }));
  await server.receives(first + 1);
  server.answerAll();
  assert.equal((await neighbour).rcode, 0);
  assert.deepEqual(
    new Set((await flood).map(({ rcode }) => rcode)),
    new Set([0]),
    "every query of the flood is answered",
  );
});

test("a query that waits in another container's queue is not joined", async () => {
  await using server = new HeldServer();
  const { flood, lastName } = flooded(server);
  await server.receives(first);
  const neighbour = server.path.query(clientOf(server.server), aQuery({ name: lastName }));
  await server.receives(first + 1);
  server.answerAll();
  await Promise.all([neighbour, flood]);
});

test("queries without an answer make room for those that wait, after the time of a lost one", async () => {
  await using server = new HeldServer();
  using clock = new Clock();
  const { flood } = flooded(server, clock.now);
  await server.receives(first);
  await server.settled();
  assert.equal(server.queries.length, first);
  clock.advance(LIMITS.retransmitMs);
  while (server.names.size <= first) await nextTurn();
  clock.advance(5_000);
  assert.deepEqual(new Set((await flood).map(({ rcode }) => rcode)), new Set([2]), "within the time budget of each");
});

test("a query that waits until its time budget ends fails for want of its turn", async () => {
  await using server = new HeldServer();
  using clock = new Clock();
  const { flood } = flooded(server, clock.now, 12 * first);
  await server.receives(first);
  clock.advance(5_000);
  await flood;
  assert.match(server.path.failures.join("\n"), /too many queries of the container wait for it/);
});

// Answers nothing until it is told to, and then everything.
class HeldServer extends UdpUpstream {
  readonly #held: (() => void)[] = [];
  path = new QueryPath();
  #isHolding = true;

  constructor() {
    super((query, reply) => {
      const answer = (): void => reply(aReplyTo(query));
      if (this.#isHolding) this.#held.push(answer);
      else answer();
    }, "host");
  }

  answerAll(): void {
    this.#isHolding = false;
    for (const answer of this.#held) answer();
  }

  get names(): Set<string> {
    return new Set(this.queries.map((query) => query.toString("latin1", 12)));
  }

  // Whatever was sent has arrived.
  async settled(): Promise<void> {
    for (let turns = 0; turns < 10; turns++) await nextTurn();
  }
}

async function nextTurn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

function flooded(
  server: HeldServer,
  now?: () => number,
  count = 3 * first,
): { readonly flood: Promise<Reply[]>; readonly lastName: string } {
  // Probes of the loop guard would be queries, too.
  server.path = new QueryPath({ behaviour: { guardsLoops: false }, ...(now && { now }) });
  const flooder = clientOf(server.server);
  const names = Array.from({ length: count }, (_, index) => `n${index}.test`);
  const flood = Promise.all(names.map(async (name) => await server.path.query(flooder, aQuery({ name }))));
  return { flood, lastName: names.at(-1) ?? "" };
}
