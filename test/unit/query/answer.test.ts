// Proves the path of a query through the answerer, in both modes: what is answered locally, and what is deferred.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT_BEHAVIOUR, STRICT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import type { Client } from "../../../src/query/client/client.ts";
import type { Server } from "../../../src/base/model/view.ts";
import { NOT_SHAREABLE } from "../../../src/query/wire/hop-options.ts";
import { hashOf } from "../../../src/base/model/label-table.ts";
import {
  TYPE,
  aName,
  aNetwork,
  aQuery,
  aRecord,
  aRoute,
  aView,
  aClient,
  upstreams,
} from "../../support/scripted/builders.ts";
import { type AnswerResult, addressesIn, answerOnce, replyOnce } from "../support/reply.ts";

const MODES = { strict: STRICT_BEHAVIOUR, default: DEFAULT_BEHAVIOUR };
const REVERSE = "2.0.20.172.in-addr.arpa";

const ONE = aNetwork({
  name: "one",
  members: [
    { names: ["web", "shared"], ipv4: "172.20.0.2", ipv6: "fd11::a:2" },
    { names: ["db", "shared"], ipv4: "172.20.0.3" },
    { names: ["mail.example.org"], ipv4: "172.20.0.4" },
    { names: ["x".repeat(64)], ipv4: "172.20.0.5" },
  ],
});

for (const [mode, behaviour] of Object.entries(MODES)) {
  test(`${mode}: A and AAAA of a container return its addresses`, () => {
    const client = clientOnOne();
    const { flags, rcode, question, answers } = replyOnce(aQuery({ name: "Web.one" }), { behaviour, client });
    assert.deepEqual([flags, rcode], ["qr rd ra", 0]);
    assert.equal(question?.name, "Web.one");
    assert.deepEqual(
      answers.map(({ owner, type, ttl, data }) => [owner, type, ttl, data.join(".")]),
      [["Web.one", TYPE.A, behaviour.ttlSeconds, "172.20.0.2"]],
    );
    const v6 = replyOnce(aQuery({ name: "web", type: TYPE.AAAA }), { behaviour, client });
    assert.deepEqual(addressesIn(v6), ["fd11:0000:0000:0000:0000:0000:000a:0002"]);
  });

  test(`${mode}: a name that several containers have returns all their addresses`, () => {
    const reply = replyOnce(aQuery({ name: "shared" }), { behaviour, client: clientOnOne() });
    assert.deepEqual(addressesIn(reply), ["172.20.0.2", "172.20.0.3"]);
  });

  test(`${mode}: a local name without an address of that family gets an empty answer`, () => {
    const reply = replyOnce(aQuery({ name: "db", type: TYPE.AAAA }), { behaviour, client: clientOnOne() });
    assert.deepEqual([reply.rcode, reply.answers.length, reply.flags], [0, 0, "qr rd ra"]);
  });

  test(`${mode}: MX of a local name is empty, with or without a dot; of an unknown one it is forwarded`, () => {
    for (const name of ["web", "mail.example.org"]) {
      assert.equal(replyOnce(aQuery({ name, type: TYPE.MX }), { behaviour, client: clientOnOne() }).answers.length, 0);
    }
    assert.equal(
      answerOnce(aQuery({ name: "nope", type: TYPE.MX }), { behaviour, client: clientOnOne() }).kind,
      "deferred",
    );
  });

  test(`${mode}: PTR of a container's address returns its name`, () => {
    const reply = replyOnce(aQuery({ name: REVERSE, type: TYPE.PTR }), { behaviour, client: clientOnOne() });
    assert.equal(reply.answers[0]?.data.toString("latin1"), "\x03web\x03one\0");
  });

  test(`${mode}: PTR of an address whose name is too long for a message is SERVFAIL`, () => {
    const query = aQuery({ name: REVERSE.replace("2", "5"), type: TYPE.PTR });
    const reply = replyOnce(query, { behaviour, client: clientOnOne() });
    assert.deepEqual([reply.rcode, reply.flags, reply.counts], [2, "qr rd", [1, 0, 0, 0]]);
  });

  test(`${mode}: unknown names, reverse names of other addresses and other trees are forwarded`, () => {
    for (const [name, type] of [
      ["example.org", TYPE.A],
      ["nope", TYPE.A],
      [".", TYPE.NS],
      ["1.0.20.172.in-addr.arpa", TYPE.PTR],
      ["_http._tcp.local", TYPE.PTR],
      ["nope", TYPE.TXT],
    ] as const) {
      assert.equal(answerOnce(aQuery({ name, type }), { behaviour, client: clientOnOne() }).kind, "deferred", name);
    }
  });

  test(`${mode}: if ndots is set, address queries for unknown names without a dot are empty, and all else is forwarded`, () => {
    const client = aClient(aView([ONE], upstreams({ isNdotsSet: true })));
    for (const type of [TYPE.A, TYPE.AAAA]) {
      for (const name of ["nope", "."]) assert.equal(replyOnce(aQuery({ name, type }), { behaviour, client }).rcode, 0);
    }
    for (const [name, type] of [
      ["nope", TYPE.TXT],
      ["nope", TYPE.MX],
      ["nope.one", TYPE.A],
    ] as const) {
      assert.equal(answerOnce(aQuery({ name, type }), { behaviour, client }).kind, "deferred", name);
    }
  });

  test(`${mode}: replies and fragments get no answer`, () => {
    for (const message of [aQuery({ flags: 0x8180 }), aQuery().subarray(0, 11), Buffer.alloc(0)]) {
      assert.equal(answerOnce(message, { behaviour, client: clientOnOne() }).kind, "dropped");
    }
  });

  test(`${mode}: other opcodes, invalid headers and malformed bodies get their rcodes`, () => {
    const client = clientOnOne();
    assert.equal(replyOnce(aQuery({ flags: 0x2800 }), { behaviour, client }).rcode, 4);
    const header = replyOnce(aQuery({ counts: [2, 0, 0, 0] }), { behaviour, client });
    assert.deepEqual([header.rcode, header.counts], [1, [0, 0, 0, 0]]);
    const broken = aQuery({ answers: [aRecord({ type: TYPE.A, data: Buffer.of(1) })] });
    const body = replyOnce(broken, { behaviour, client });
    assert.deepEqual([body.rcode, body.counts], [1, [1, 0, 0, 0]]);
  });

  test(`${mode}: over UDP an answer fits the announced size, over TCP there is room for all`, () => {
    const members = Array.from({ length: 300 }, (_, index) => ({
      names: ["many"],
      ipv4: `10.0.${index >> 8}.${index & 0xff}`,
    }));
    const client = aClient(aView([aNetwork({ members })]));
    const query = aQuery({ name: "many", opt: { udpSize: 1232 } });
    const cut = answerOnce(query, { behaviour, client });
    assert.ok(cut.kind === "reply" && cut.message.length <= 1232 && cut.reply.flags === "qr tc rd ra");
    const whole = replyOnce(query, { behaviour, client, isStream: true });
    assert.deepEqual([whole.answers.length, whole.flags], [300, "qr rd ra"]);
  });

  test(`${mode}: a deferred query is forwarded unchanged, without trailing bytes`, () => {
    const sound = aQuery({ id: 0xbeef, flags: 0x0110, name: "Example.org", class: 3, opt: { udpSize: 900 } });
    const query = Buffer.concat([sound, Buffer.alloc(9, 1)]);
    assert.deepEqual(deferred(answerOnce(query, { behaviour, client: clientOnOne() })), {
      query: sound,
      questionEnd: 12 + "Example.org".length + 2 + 4,
      hasOpt: true,
      udpSize: 900,
      isLocalName: false,
      route: aRoute("", []),
      type: TYPE.A,
      bits: NOT_SHAREABLE,
      name: aName("example.org").toString("latin1", 0, "example.org".length + 1),
      nameHash: hashOf(aName("example.org").subarray(0, -1)),
      isDnssecOk: false,
      isOwn: false,
      signature: undefined,
      alias: undefined,
      dockerQuestion: undefined,
      delayMs: undefined,
      rule: undefined,
      policy: undefined,
      refusal: undefined,
      held: undefined,
    });
    assert.equal(deferred(answerOnce(aQuery({ name: "nope" }), { behaviour, client: clientOnOne() })).hasOpt, false);
  });

  test(`${mode}: a probe is recorded with its transport, and answered`, () => {
    const client = clientOnOne();
    const query = aQuery({ name: "00ff.dns11.invalid", type: TYPE.TXT });
    answerOnce(query, { behaviour, client });
    assert.deepEqual(client.probeSeen, { udp: false, tcp: false });
    client.probeNonce = "00ff";
    assert.equal(replyOnce(query, { behaviour, client }).rcode, 0);
    assert.deepEqual(client.probeSeen, { udp: true, tcp: false });
    assert.equal(replyOnce(query, { behaviour, client, isStream: true }).rcode, 0);
    assert.deepEqual(client.probeSeen, { udp: true, tcp: true });
  });

  test(`${mode}: another nonce, another type and another name are no probe`, () => {
    const client = clientOnOne();
    client.probeNonce = "00ff";
    for (const [name, type] of [
      ["00fe.dns11.invalid", TYPE.TXT],
      ["00ff.dns11.invalid", TYPE.A],
      ["00ff.dns11.invalid.x", TYPE.TXT],
    ] as const) {
      answerOnce(aQuery({ name, type }), { behaviour, client });
    }
    assert.deepEqual(client.probeSeen, { udp: false, tcp: false });
  });
}

test("every query is counted once, by its result", () => {
  const client = clientOnOne();
  const broken = aQuery({ counts: [0, 0, 0, 0] });
  for (const query of [
    aQuery(),
    aQuery({ name: "nope" }),
    broken,
    aQuery({ flags: 0x2800 }),
    aQuery({ flags: 0x8000 }),
  ]) {
    answerOnce(query, { behaviour: DEFAULT_BEHAVIOUR, client });
  }
  const { queries, local, forwarded, malformed, ignored } = client.counters;
  assert.deepEqual(
    { queries, local, forwarded, malformed, ignored },
    { queries: 5, local: 1, forwarded: 1, malformed: 2, ignored: 1 },
  );
});

test("a name below a route's domain is deferred to that route, the longest suffix first, ignoring letter case", () => {
  const [one, two, rest] = [aServer("10.0.0.1"), aServer("10.0.0.2"), aServer("10.0.0.3")];
  const routes = [aRoute("eu.corp.example", [one]), aRoute("corp.example", [two])];
  const client = aClient(aView([ONE], upstreams({ servers: [rest], routes })));
  for (const [name, server] of [
    ["a.eu.corp.example", one],
    ["EU.corp.Example", one],
    ["corp.example", two],
    ["x.noteu.corp.example", two],
    ["notcorp.example", rest],
    ["example", rest],
    [".", rest],
  ] as const) {
    const answered = answerOnce(aQuery({ name }), { behaviour: DEFAULT_BEHAVIOUR, client });
    assert.deepEqual(deferred(answered).route.servers, [server], name);
  }
});

test("a name below a local-only domain gets NXDOMAIN", () => {
  const client = aClient(aView([ONE], upstreams({ routes: [aRoute("lan", "local")] })));
  const answered = answerOnce(aQuery({ name: "printer.lan" }), { behaviour: DEFAULT_BEHAVIOUR, client });
  assert.ok(answered.kind === "reply");
  assert.deepEqual([answered.reply.rcode, answered.reply.authorities.length], [3, 1]);
});

test("a name without a dot that has its own route is forwarded, even if ndots is set", () => {
  const client = aClient(aView([ONE], upstreams({ routes: [aRoute("lan", [aServer("10.0.0.1")])], isNdotsSet: true })));
  assert.equal(answerOnce(aQuery({ name: "lan" }), { behaviour: STRICT_BEHAVIOUR, client }).kind, "deferred");
  assert.equal(answerOnce(aQuery({ name: "wan" }), { behaviour: STRICT_BEHAVIOUR, client }).kind, "reply");
});

function aServer(address: string): Server {
  return { from: "host", address, port: 53 };
}

function clientOnOne(): Client {
  return aClient(aView([ONE]));
}

function deferred(answered: AnswerResult): Extract<AnswerResult, { kind: "deferred" }>["deferred"] {
  assert.equal(answered.kind, "deferred");
  return answered.deferred;
}
