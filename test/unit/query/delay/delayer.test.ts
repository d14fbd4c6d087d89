// Queries that a judge holds: they are answered once, in the end, unless the container is gone; and what waits is within the
// container's share.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";

import { LIMITS } from "../../../../src/base/limits.ts";
import { DEFAULT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { Answerer } from "../../../../src/query/answer.ts";
import type { Client } from "../../../../src/query/client/client.ts";
import { Delayer } from "../../../../src/query/forward/delayer.ts";
import { DEFERRED, SLOT_BYTES } from "../../../../src/query/ports.ts";
import { aClient, aNetwork, aQuery, aReplyTo, aView } from "../../../support/scripted/builders.ts";
import { Clock } from "../../support/clock.ts";
import { readReply } from "../../support/reply.ts";

const MS = 200;
const NETWORK = aNetwork({ name: "one", members: [{ names: ["web"], ipv4: "172.20.0.2" }] });

class Held {
  readonly client: Client = aClient(aView([NETWORK]));
  readonly forwarded: string[] = [];
  readonly replies: string[] = [];
  readonly #answerer = new Answerer(DEFAULT_BEHAVIOUR, { seed: 1 });
  readonly #block = Buffer.alloc(SLOT_BYTES);
  readonly #delayer: Delayer;

  constructor(queriesMax: number = LIMITS.forwardQueriesShared) {
    this.client.judge = {
      isCovered: true,
      judge: () => ({ action: { kind: "delay", ms: MS }, text: "delay" }),
      note: () => undefined,
    };
    this.#delayer = new Delayer({
      behaviour: DEFAULT_BEHAVIOUR,
      answerer: this.#answerer,
      forward: (_, { name, query, rule }, __, respond) => {
        this.forwarded.push(`${name.slice(1)} ${rule}`);
        respond(aReplyTo(query, 3), this.#answerer.outcome);
      },
      now: () => performance.now(),
      queriesMax,
    });
  }

  send(name: string, isOwn = false): void {
    const query = aQuery({ name });
    query.copy(this.#block);
    assert.equal(this.#answerer.answer(this.client, this.#block, 0, query.length, false, isOwn), DEFERRED);
    this.#delayer.forward(this.client, this.#answerer.takeDeferred(this.#block), "udp", (reply, { rule }) => {
      const { rcode, answers } = readReply(Buffer.from(reply));
      this.replies.push(`${rcode} ${answers.map(({ data }) => data.join(".")).join(",")} ${rule ?? ""}`.trim());
    });
  }
}

test("a held query is answered as always, local or not, after its time", async () => {
  using clock = new Clock();
  const held = new Held();
  held.send("web");
  held.send("else");
  await turn();
  clock.advance(MS - 1);
  assert.deepEqual(held.replies, []);
  assert.equal(held.client.slots.taken, 2);
  clock.advance(1);
  assert.deepEqual([held.replies.length, held.replies[0]], [2, "0 172.20.0.2 delay"]);
  assert.deepEqual(held.forwarded, ["else delay"]);
  assert.deepEqual([held.client.counters.queries, held.client.slots.taken], [2, 0]);
});

test("a container that is gone gets nothing, but a query that is explained ends", async () => {
  using clock = new Clock();
  const held = new Held();
  held.send("web");
  held.send("web", true);
  await turn();
  held.client.close();
  clock.advance(MS);
  assert.deepEqual([held.replies, held.client.slots.taken], [["2  delay"], 0]);
});

test("no more wait than a container may have in flight, and all others are refused", async () => {
  using clock = new Clock();
  const held = new Held();
  const sent = LIMITS.forwardSlots + LIMITS.forwardWaiting + 100;
  for (let count = 0; count < sent; count += 1) held.send("web");
  await turn();
  assert.deepEqual(
    held.replies,
    Array.from({ length: 100 }, () => "5  delay"),
  );
  assert.equal(held.client.slots.taken, LIMITS.forwardSlots);
  while (held.replies.length < sent) {
    clock.advance(MS);
    await turn();
  }
  assert.equal(held.client.slots.taken, 0);
});
