// Proves that an answer waits at the gate until its addresses are open, wherever it comes from, and fails if they are not.

import assert from "node:assert/strict";
import { test } from "node:test";

import { decode, encode } from "dns-packet";

import { DEFAULT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { TYPE } from "../../../../src/base/dns/record-type.ts";
import { Pool } from "../../../../src/base/lib/share.ts";
import { LIMITS } from "../../../../src/base/limits.ts";
import type { View } from "../../../../src/base/model/view.ts";
import { readSettings } from "../../../../src/config/file/settings-file.ts";
import { CompiledPolicy } from "../../../../src/features/policy/judge/compiled-policy.ts";
import { NamespacePolicy } from "../../../../src/features/policy/judge/namespace-policy.ts";
import { Answerer } from "../../../../src/query/answer.ts";
import { Client } from "../../../../src/query/client/client.ts";
import { HeldAnswers } from "../../../../src/query/forward/delayer.ts";
import { AnswerGate } from "../../../../src/features/policy/gate/answer-gate.ts";
import { PolicyGate } from "../../../../src/features/policy/gate/policy-gate.ts";
import type { GivenAnswer, OpenAddresses } from "../../../../src/features/policy/judge/given-answer.ts";
import { Meter, OUTCOMES, durationSeries } from "../../../../src/query/record/meter.ts";
import { LOCAL_SOURCE } from "../../../../src/base/model/local-source.ts";
import { DEFERRED, type DeferredQuery, SLOT_BYTES } from "../../../../src/query/ports.ts";
import { POLICY_LIMITS } from "../../../../src/features/policy/model/limits.ts";

const SETTINGS = `version: 1
policies:
  agents: {mode: enforce, allow: [a.test], private: deny}
`;

function aPolicy(): NamespacePolicy {
  const [policy] = readSettings(Buffer.from(SETTINGS), "f").values.policies ?? [];
  assert.ok(policy !== undefined);
  const observer = { onRefusal: () => undefined, now: () => 0 };
  return new NamespacePolicy("id", [new CompiledPolicy(policy)], observer);
}

function policed({ gate }: Pick<Opener, "gate">): Client {
  const view: View = { names: [], upstreams: { routes: [], isNdotsSet: false } };
  const client = new Client(view, () => -1);
  client.policy = new PolicyGate(aPolicy(), gate);
  return client;
}

/** The same; names such as localhost are answered by this machine. */
function answeredByMachine(opener: Opener): Client {
  const client = policed(opener);
  client.view = {
    names: [],
    upstreams: { routes: [{ suffix: new Uint8Array(), labelCount: 0, servers: [] }], isNdotsSet: false },
  } as never;
  return client;
}

/** Opens addresses when the test says so. */
class Opener {
  readonly asked: GivenAnswer[] = [];
  settle: (isOpen: boolean) => void = () => undefined;
  readonly openAddresses: OpenAddresses = (answer, onOpen) => {
    this.asked.push(answer);
    this.settle = onOpen;
    return false;
  };
  readonly gate = new AnswerGate(this);
}

function query(name: string, type: "A" | "AAAA" = "A"): Buffer {
  return encode({ type: "query", id: 9, flags: 0x0100, questions: [{ type, name }] });
}

function answeredHere(client: Client, name: string): DeferredQuery {
  const answerer = new Answerer(DEFAULT_BEHAVIOUR);
  const block = Buffer.alloc(SLOT_BYTES);
  const message = query(name);
  message.copy(block);
  assert.equal(answerer.answer(client, block, 0, message.length, false), DEFERRED);
  return answerer.takeDeferred(block);
}

for (const [isOpen, rcode] of [
  [true, "NOERROR"],
  [false, "SERVFAIL"],
] as const) {
  test(`an answer that is known waits, and is ${rcode} if its addresses are ${isOpen ? "" : "not "}open`, async () => {
    const opener = new Opener();
    const client = answeredByMachine(opener);
    const deferred = answeredHere(client, "localhost");
    assert.deepEqual(
      opener.asked.map(({ addresses, isLocal }) => [addresses.map(String), isLocal]),
      [[["127,0,0,1"], true]],
    );
    const held = new HeldAnswers({
      forward: () => assert.fail("nothing is forwarded"),
      now: () => 0,
      queriesMax: 10,
    });
    const replied = new Promise<string | undefined>((resolve) => {
      held.forward(client, deferred, "udp", (reply) =>
        resolve((decode(Buffer.from(reply)) as { rcode?: string }).rcode),
      );
    });
    await new Promise((resolve) => setImmediate(resolve));
    opener.settle(isOpen);
    assert.equal(await replied, rcode);
  });

  test(`an answer of a server waits, too, and is ${rcode} then`, () => {
    const opener = new Opener();
    const client = policed(opener);
    const message = query("a.test");
    const deferred = {
      ...{ query: message, questionEnd: message.length, hasOpt: false, udpSize: 0, isLocalName: false, type: 1 },
      ...{ name: "\u0001a\u0004test", isDnssecOk: false, policy: client.policy },
    } as unknown as DeferredQuery;
    const reply = encode({
      type: "response",
      id: 9,
      questions: [{ type: "A", name: "a.test" }],
      answers: [{ type: "A", name: "a.test", data: "198.51.100.1" }],
    });
    let given: string | undefined;
    assert.ok(client.policy !== undefined);
    const { policy } = client;
    const share = client.shares.queryBytes;
    policy.passForwarded({ deferred, transport: "udp", reply, result: "forwarded" }, share, (passed) => {
      given = (decode(Buffer.from(passed.reply)) as { rcode?: string }).rcode;
    });
    assert.deepEqual([given, share.taken], [undefined, reply.length]);
    // Others of another container wait already.
    const full = new Pool({ whole: 0, each: 0, always: 0 }).open();
    let refused: string | undefined;
    const other = policed(new Opener()).policy;
    other?.passForwarded({ deferred, transport: "udp", reply, result: "forwarded" }, full, (passed) => {
      refused = (decode(Buffer.from(passed.reply)) as { rcode?: string }).rcode;
    });
    assert.equal(refused, "SERVFAIL");
    // The caller has used its memory for something else.
    reply.fill(0);
    opener.settle(isOpen);
    assert.deepEqual([given, share.taken], [rcode, 0]);
  });
}

test("an answer of this machine that has waited counts as one, and not as forwarded", async () => {
  const opener = new Opener();
  const client = answeredByMachine(opener);
  const meter = new Meter();
  const answerer = new Answerer(DEFAULT_BEHAVIOUR);
  const block = Buffer.alloc(SLOT_BYTES);
  const message = query("localhost");
  message.copy(block);
  assert.equal(answerer.answer(client, block, 0, message.length, false), DEFERRED);
  meter.record(answerer.outcome);
  const counted = (): readonly number[] => {
    const { queries, local, forwarded } = client.counters;
    const late = OUTCOMES.map((_, outcome) => meter.durations.read([durationSeries(0, 0, outcome)]).atMost.at(-1) ?? 0);
    return [queries, local, forwarded, meter.requests(0, 0, 0), meter.localAnswers(LOCAL_SOURCE.rule), ...late];
  };
  assert.deepEqual(counted(), [1, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
  const held = new HeldAnswers({ forward: () => assert.fail("nothing is forwarded"), now: () => 0, queriesMax: 1 });
  await new Promise<void>((resolve) => {
    held.forward(client, answerer.takeDeferred(block), "udp", (_, outcome) => {
      meter.record(outcome);
      resolve();
    });
    setImmediate(() => opener.settle(true));
  });
  assert.deepEqual(counted(), [1, 1, 0, 1, 1, 1, 0, 0, 0, 0]);
});

test("what is refused is opened for nobody", () => {
  const opener = new Opener();
  const reply = encode({
    type: "response",
    id: 9,
    questions: [{ type: "A", name: "a.test" }],
    answers: [
      { type: "A", name: "a.test", data: "198.51.100.1" },
      { type: "A", name: "a.test", data: "10.0.0.1" },
    ],
  });
  assert.equal(opener.gate.pass(aPolicy(), reply, false, false).kind, "refuse");
  assert.deepEqual(opener.asked, []);
});

/** A question for A of a.test, and records that all belong to it. */
function replyOf(type: number, count: number, data: (n: number) => Buffer): Buffer {
  const question = encode({ type: "response", id: 9, questions: [{ type: "A", name: "a.test" }] });
  question.writeUInt16BE(count, 6);
  const records = Array.from({ length: count }, (_, n) => {
    const bytes = data(n);
    const fixed = Buffer.from([
      0xc0,
      12,
      type >> 8,
      type & 0xff,
      0,
      1,
      0,
      0,
      0,
      60,
      bytes.length >> 8,
      bytes.length & 0xff,
    ]);
    return Buffer.concat([fixed, bytes]);
  });
  return Buffer.concat([question, ...records]);
}

test("a reply with more addresses or aliases than are judged counts as unreadable, and so many are judged", () => {
  const gate = new AnswerGate();
  const policy = aPolicy();
  const addresses = (count: number): Buffer => replyOf(TYPE.A, count, (n) => Buffer.of(198, 51, n >> 8, n & 0xff));
  // Each alias is to the name that was asked.
  const aliases = (count: number): Buffer => replyOf(TYPE.CNAME, count, () => Buffer.of(0xc0, 12));
  const hints = (count: number): Buffer => {
    const parameter = Buffer.alloc(7);
    parameter.writeUInt16BE(4, 3);
    parameter.writeUInt16BE(4 * count, 5);
    return replyOf(TYPE.HTTPS, 1, () => Buffer.concat([parameter, Buffer.alloc(4 * count, 198)]));
  };
  for (const [made, max] of [
    [addresses, POLICY_LIMITS.answerAddresses],
    [hints, POLICY_LIMITS.answerAddresses],
    [aliases, POLICY_LIMITS.answerAliases],
  ] as const) {
    assert.equal(gate.pass(policy, made(max), false, false).kind, "give");
    assert.equal(gate.pass(policy, made(max + 1), false, false).kind, "fail");
  }
});

test("an answer that is refused, because too much waits, no longer counts as waiting", async () => {
  const opener = new Opener();
  const client = answeredByMachine(opener);
  const held = new HeldAnswers({ forward: () => assert.fail("nothing is forwarded"), now: () => 0, queriesMax: 3 });
  const asked = async (): Promise<string | undefined> => {
    const deferred = answeredHere(client, "localhost");
    return await new Promise((resolve) => {
      held.forward(client, deferred, "udp", (reply) =>
        resolve((decode(Buffer.from(reply)) as { rcode?: string }).rcode),
      );
      setImmediate(() => opener.settle(true));
    });
  };
  const all = LIMITS.forwardBytes.each;
  assert.ok(client.shares.queryBytes.take(all));
  for (let round = 0; round < 5; round++) assert.equal(await asked(), "REFUSED");
  client.shares.queryBytes.give(all);
  // This one has so much in flight that it is admitted only where there is room.
  while (client.slots.held < LIMITS.forwardQueriesAlways) assert.ok(client.slots.tryTake());
  assert.equal(await asked(), "NOERROR");
});
