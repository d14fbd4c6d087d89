// Proves that metrics count the queries of containers with their rcodes, and not our own probes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { LOCAL_SOURCES } from "../../../../src/base/model/local-source.ts";
import { probeQuery } from "../../../../src/base/model/probe-message.ts";
import { Answerer } from "../../../../src/query/answer.ts";
import { SLOT_BYTES } from "../../../../src/query/ports.ts";
import { Meter, RCODE_NAMES, TYPE_NAMES } from "../../../../src/query/record/meter.ts";
import { TYPE, aNetwork, aQuery, aView, aClient } from "../../../support/scripted/builders.ts";

const NONCE = "0123456789abcdef";

function metered(): { readonly meter: Meter; readonly send: (query: Buffer) => void; readonly counted: () => object } {
  const meter = new Meter();
  const answerer = new Answerer(DEFAULT_BEHAVIOUR);
  const client = aClient(aView([aNetwork({ members: [{ names: ["web"], ipv4: "172.20.0.2" }] })]));
  client.probeNonce = NONCE;
  const block = Buffer.alloc(SLOT_BYTES);
  const send = (query: Buffer): void => {
    query.copy(block);
    answerer.answer(client, block, 0, query.length, false);
    meter.record(answerer.outcome);
  };
  const named = (names: readonly string[], count: (index: number) => number): object =>
    Object.fromEntries(names.map((name, index) => [name, count(index)] as const).filter(([, count_]) => count_ > 0));
  const counted = (): object => ({
    types: named(TYPE_NAMES, (index) => meter.requests(0, 0, index)),
    codes: named(RCODE_NAMES, (index) => meter.responses(index)),
    container: [client.counters.queries, client.counters.local],
    sources: Object.fromEntries(
      LOCAL_SOURCES.flatMap(({ key }, index) => {
        const count = meter.localAnswers(index);
        return count === 0 ? [] : [[key, count] as const];
      }),
    ),
  });
  return { meter, send, counted };
}

test("our own probe is not counted as a container's query; a similar query is", () => {
  const { send, counted } = metered();
  send(probeQuery(NONCE, 1));
  assert.deepEqual(counted(), { types: {}, codes: {}, container: [0, 0], sources: {} });
  send(probeQuery("another", 1));
  assert.deepEqual(counted(), { types: { TXT: 1 }, codes: { NXDOMAIN: 1 }, container: [1, 1], sources: { rule: 1 } });
});

test("an rcode that only an OPT can carry is not confused with the one in the header", () => {
  const { send, counted } = metered();
  send(aQuery({ name: "web", opt: { version: 1 } }));
  assert.deepEqual(counted(), { types: { A: 1 }, codes: { other: 1 }, container: [1, 0], sources: {} });
  send(aQuery({ name: "web", type: TYPE.A }));
  assert.deepEqual(counted(), {
    types: { A: 2 },
    codes: { NOERROR: 1, other: 1 },
    container: [2, 1],
    sources: { network: 1 },
  });
});
