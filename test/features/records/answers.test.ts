// Proves the answers for declared names: records of each type, empty answers instead of forwarding, CNAMEs to declared
// names, containers and upstream names, wildcards, scopes, and what is cut to fit.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT_BEHAVIOUR } from "../../../src/base/model/behaviour.ts";
import { Answerer } from "../../../src/query/answer.ts";
import type { Client } from "../../../src/query/client/client.ts";
import { SLOT_BYTES } from "../../../src/query/ports.ts";
import { Trace } from "../../../src/query/trace.ts";
import { replyToAlias } from "../../../src/query/wire/alias.ts";
import {
  TYPE,
  aClient,
  aContainer,
  aName,
  aNetwork,
  aPointer,
  aQuery,
  aRecord,
  aReplyTo,
  aView,
  anEndpoint,
  u16,
} from "../../support/scripted/builders.ts";
import { declarationsFor } from "./declared.ts";
import {
  type AnswerResult,
  type Reply,
  addressesIn,
  answerOnce,
  readName,
  readReply,
} from "../../unit/support/reply.ts";

const SHOP = `
records:
  shop.test:
    a: [10.0.0.1, 10.0.0.2]
    mx: [10 mail.shop.test, 20 mail2.shop.test]
    txt: v=spf1 -all
    ttl: 1m
  www.shop.test: {cname: Shop.test}
  deep.shop.test: {cname: www.shop.test, ttl: 7}
  db.shop.test: {cname: db}
  dbs.shop.test: {container: [db, web]}
  gone.shop.test: {cname: nobody}
  far.shop.test: {cname: Long.Name.Example.com}
  "*.apps.test": {container: web}
  "*.b.apps.test": 10.0.0.9
  x.b.apps.test: 10.0.0.8
  2.0.20.172.in-addr.arpa: {ptr: wrong.test}
  9.0.0.10.in-addr.arpa: {ptr: right.test}
  web: 10.0.0.7
`;
const ONE = aNetwork({
  members: [
    { names: ["web"], ipv4: "172.20.0.2", ipv6: "fd11::2" },
    { names: ["db"], ipv4: "172.20.0.3" },
  ],
});

function client(text = SHOP, container = aContainer()): Client {
  const view = aView([ONE]);
  return aClient({ ...view, names: [...view.names, ...declarationsFor(text, container)] });
}

function ask(name: string, type: number = TYPE.A, asker = client(), opt = {}): AnswerResult {
  return answerOnce(aQuery({ name, type, ...opt }), { behaviour: DEFAULT_BEHAVIOUR, client: asker });
}

function replyFor(name: string, type?: number, asker?: Client, opt?: object): Reply {
  const result = ask(name, type, asker, opt);
  assert.equal(result.kind, "reply", `${name} is not forwarded`);
  return result.reply;
}

function linesOf({ answers }: Reply): string[] {
  return answers.map(({ owner, type, ttl }) => `${owner} ${ttl} ${type}`).toSorted();
}

test("a declared name has its records with their TTL, in any letter case", () => {
  const a = replyFor("SHOP.Test");
  assert.deepEqual(addressesIn(a), ["10.0.0.1", "10.0.0.2"]);
  assert.deepEqual(linesOf(a), ["SHOP.Test 60 1", "SHOP.Test 60 1"]);
  assert.equal(a.flags, "qr rd ra");
  const mx = replyFor("shop.test", TYPE.MX);
  assert.deepEqual(
    mx.answers.map(({ data }) => data),
    [Buffer.concat([u16(10), aName("mail.shop.test")]), Buffer.concat([u16(20), aName("mail2.shop.test")])],
  );
  const any = replyFor("shop.test", TYPE.ANY);
  assert.deepEqual(
    any.answers.map(({ type }) => type),
    [TYPE.A, TYPE.A, TYPE.MX, TYPE.MX, TYPE.TXT],
  );
});

test("other types of a declared name are empty and never forwarded", () => {
  for (const type of [TYPE.AAAA, TYPE.SRV, TYPE.HTTPS, TYPE.NS, TYPE.SOA, TYPE.CNAME, 65_280]) {
    const { rcode, answers, authorities } = replyFor("shop.test", type);
    assert.deepEqual([rcode, answers.length, authorities[0]?.type], [0, 0, TYPE.SOA], String(type));
  }
  assert.equal(ask("other.shop.test").kind, "deferred");
});

test("CNAMEs are followed to declared names", () => {
  const reply = replyFor("deep.shop.test");
  assert.deepEqual(
    reply.answers.slice(0, 2).map(({ owner, type, ttl }) => [owner, type, ttl]),
    [
      ["deep.shop.test", TYPE.CNAME, 7],
      ["www.shop.test", TYPE.CNAME, 5],
    ],
  );
  assert.deepEqual(
    reply.answers.slice(2).map(({ owner, ttl }) => [owner, ttl]),
    [
      ["Shop.test", 60],
      ["Shop.test", 60],
    ],
  );
  const alone = replyFor("deep.shop.test", TYPE.CNAME);
  assert.deepEqual(linesOf(alone), ["deep.shop.test 7 5"]);
  const empty = replyFor("www.shop.test", TYPE.AAAA);
  assert.deepEqual([linesOf(empty), empty.authorities.length], [["www.shop.test 5 5"], 1]);
});

test("CNAMEs and container targets have the addresses of containers", () => {
  const db = replyFor("db.shop.test");
  assert.deepEqual(linesOf(db), ["db 5 1", "db.shop.test 5 5"]);
  assert.deepEqual(db.answers[1]?.data, Buffer.of(172, 20, 0, 3));
  assert.deepEqual(addressesIn(replyFor("dbs.shop.test")), ["172.20.0.2", "172.20.0.3"]);
  assert.deepEqual(addressesIn(replyFor("dbs.shop.test", TYPE.AAAA)), ["fd11:0000:0000:0000:0000:0000:0000:0002"]);
  assert.equal(replyFor("dbs.shop.test", TYPE.TXT).answers.length, 0);
});

test("container names come before declared names, and their addresses keep their reverse names", () => {
  assert.deepEqual(addressesIn(replyFor("web")), ["172.20.0.2"]);
  const reverse = replyFor("2.0.20.172.in-addr.arpa", TYPE.PTR);
  assert.equal(readName(Buffer.from(reverse.answers[0]?.data ?? []), 0).text, "web.one");
  const declared = replyFor("9.0.0.10.in-addr.arpa", TYPE.PTR);
  assert.equal(readName(Buffer.from(declared.answers[0]?.data ?? []), 0).text, "right.test");
});

test("an exact name comes before wildcards, the longest wildcard first, and a wildcard does not match its own domain", () => {
  assert.deepEqual(addressesIn(replyFor("x.b.apps.test")), ["10.0.0.8"]);
  assert.deepEqual(addressesIn(replyFor("y.b.apps.test")), ["10.0.0.9"]);
  assert.deepEqual(addressesIn(replyFor("a.y.b.apps.test")), ["10.0.0.9"]);
  assert.deepEqual(linesOf(replyFor("Any.Apps.test")), ["Any.Apps.test 5 1"]);
  assert.equal(ask("apps.test").kind, "deferred");
  assert.equal(ask("apps.test.example").kind, "deferred");
});

test("a project's names come before those of a network, and those before everybody's", () => {
  const text = `
records: {n.test: 10.0.0.1, everybody.test: 10.0.0.1}
networks: {one: {records: {n.test: 10.0.0.2, network.test: 10.0.0.2}}, two: {records: {n.test: 10.0.0.4}}}
projects: {shop: {records: {n.test: 10.0.0.3}}}
`;
  const labels = { "com.docker.compose.project": "shop" };
  const addressOf = (name: string, parts = {}): string[] =>
    addressesIn(replyFor(name, TYPE.A, client(text, aContainer(parts))));
  assert.deepEqual(addressOf("n.test", { labels }), ["10.0.0.3"]);
  assert.deepEqual(addressOf("n.test"), ["10.0.0.2"]);
  assert.deepEqual(addressOf("n.test", { endpoints: [anEndpoint({ networkName: "other" })] }), ["10.0.0.1"]);
  assert.deepEqual(addressOf("everybody.test", { labels }), ["10.0.0.1"]);
  const image = { labels, source: "known" };
  assert.deepEqual(addressOf("n.test", { imageLabels: image }), ["10.0.0.2"], "an image chooses no project");
  const elsewhere = client(text, aContainer({ endpoints: [anEndpoint({ networkName: "other" })] }));
  assert.equal(ask("network.test", TYPE.A, elsewhere).kind, "deferred");
});

test("CNAMEs that form a loop across networks, which no file shows, fail and end", () => {
  const text = `networks:
  one: {records: {a.test: {cname: b.test}}}
  two: {records: {b.test: {cname: a.test}}}`;
  const both = aContainer({ endpoints: [anEndpoint(), anEndpoint({ networkName: "two" })] });
  const loop = client(text, both);
  const reply = replyFor("a.test", TYPE.A, loop);
  assert.deepEqual([reply.rcode, reply.answers.length], [2, 8]);
});

test("a reply that does not fit is truncated, and has what fits", () => {
  const many = `records: {many.test: [${Array.from({ length: 60 }, (_, n) => `10.0.1.${n}`).join(", ")}]}`;
  const udp = replyFor("many.test", TYPE.A, client(many));
  assert.ok(udp.flags.includes("tc"));
  assert.ok(udp.answers.length > 20 && udp.answers.length < 60, String(udp.answers.length));
  const edns = replyFor("many.test", TYPE.A, client(many), { opt: { udpSize: 1232 } });
  assert.deepEqual([edns.flags, edns.answers.length, edns.additionals.length], ["qr rd ra", 60, 1]);
  const tight = `records: {a.test: {cname: ${"x".repeat(60)}.${"y".repeat(60)}.${"z".repeat(60)}.test}}`;
  const chain = `${tight.slice(0, -1)}, ${"x".repeat(60)}.${"y".repeat(60)}.${"z".repeat(60)}.test: {txt: ${"t".repeat(400)}}}`;
  const cut = replyFor("a.test", TYPE.TXT, client(chain));
  assert.deepEqual([cut.flags, cut.answers.length], ["qr tc rd ra", 1]);
});

test("a CNAME to a name that is not local is queried upstream, and its reply is for the original question", () => {
  for (const opt of [undefined, { udpSize: 1232 }]) {
    const deferred = deferredFor("FAR.shop.test", TYPE.MX, opt === undefined ? {} : { opt });
    assert.equal(deferred.name, "\x04long\x04name\x07example\x03com");
    assert.equal(readName(deferred.query, 12).text, "Long.Name.Example.com");
    const question = 12;
    const name = (at: number): Buffer => aPointer(question + at);
    const upstream = aReplyTo(deferred.query, 0, [
      aRecord({ owner: name(0), type: TYPE.CNAME, ttl: 9, data: Buffer.concat([Buffer.from("\x01b"), name(10)]) }),
      // The CNAME's data are 16 octets after the question, which is 27 long.
      aRecord({ owner: aPointer(51), type: TYPE.MX, ttl: 8, data: Buffer.concat([u16(1), aPointer(51)]) }),
    ]);
    const reply = readReply(replyToAlias(upstream, deferred.alias ?? assert.fail()));
    assert.equal(reply.question?.name, "FAR.shop.test");
    assert.deepEqual(
      reply.answers.map(({ owner, type, ttl }) => [owner, type, ttl]),
      [
        ["FAR.shop.test", TYPE.CNAME, 5],
        ["Long.Name.Example.com", TYPE.CNAME, 9],
        ["b.Example.com", TYPE.MX, 8],
      ],
    );
  }
});

test("an upstream reply that cannot be turned into ours is SERVFAIL, and one that does not fit is truncated", () => {
  const deferred = deferredFor("far.shop.test", TYPE.A);
  const alias = deferred.alias ?? assert.fail();
  const broken = aReplyTo(deferred.query, 0, [aRecord({ owner: aPointer(4000), type: TYPE.A, data: Buffer.alloc(4) })]);
  assert.equal(readReply(replyToAlias(broken, alias)).rcode, 2);
  const short = aReplyTo(deferred.query, 0, [aRecord({ type: TYPE.A, data: Buffer.alloc(4), dataLength: 60 })]);
  assert.equal(readReply(replyToAlias(short, alias)).rcode, 2);
  const long = aReplyTo(
    deferred.query,
    3,
    Array.from({ length: 30 }, () => aRecord({ owner: aPointer(12), type: TYPE.A, data: Buffer.alloc(4) })),
  );
  const cut = readReply(replyToAlias(long, alias));
  assert.deepEqual([cut.flags, cut.answers.length, cut.rcode], ["qr tc rd ra", 1, 3]);
});

const LONG_TARGETS = ["b", "c", "d", "e"].map((letter) => [1, 2, 3].map(() => letter.repeat(58)).join("."));
const LONG_CHAIN = [
  "records:",
  `  start.test: {cname: ${LONG_TARGETS[0]}}`,
  ...LONG_TARGETS.map((name, index) => `  ${name}: {cname: ${LONG_TARGETS[index + 1] ?? "db"}, ttl: 3}`),
].join("\n");

test("a chain of declared CNAMEs that leaves no room for the addresses gives way to them without EDNS, and is whole by TCP", () => {
  const asker = client(LONG_CHAIN);
  const { answers, flags } = replyFor("start.test", TYPE.A, asker);
  assert.equal(flags, "qr tc rd ra");
  assert.deepEqual(
    answers.map(({ owner, type, ttl, data }) => [owner, type, ttl, data.join(".")]),
    [["start.test", TYPE.A, 3, "172.20.0.3"]],
  );
  for (const opt of [{ opt: { udpSize: 512 } }, {}]) {
    const type = "opt" in opt ? TYPE.A : TYPE.AAAA;
    assert.ok(!replyFor("start.test", type, asker, opt).answers.some((each) => each.type === TYPE.A));
  }
  const whole = answerOnce(aQuery({ name: "start.test" }), {
    ...{ behaviour: DEFAULT_BEHAVIOUR, client: asker, isStream: true },
  });
  assert.equal(whole.kind, "reply");
  assert.equal(whole.reply.answers.length, 6);
});

test("the same where the last CNAME leads to an upstream name, unless a policy has to see the aliases", () => {
  const far = LONG_CHAIN.replace("cname: db", "cname: far.example.com");
  const deferred = answerOnce(aQuery({ name: "start.test" }), { behaviour: DEFAULT_BEHAVIOUR, client: client(far) });
  assert.equal(deferred.kind, "deferred");
  const { query, alias = assert.fail() } = deferred.deferred;
  const upstream = aReplyTo(query, 0, [
    aRecord({ owner: aPointer(12), type: TYPE.CNAME, ttl: 2, data: aName("end.example.com") }),
    ...[1, 2].map((last) =>
      aRecord({ owner: aName("end.example.com"), type: TYPE.A, ttl: 9, data: Buffer.of(1, 2, 3, last) }),
    ),
  ]);
  const cut = readReply(replyToAlias(upstream, alias, true));
  assert.equal(cut.question?.name, "start.test");
  assert.ok(cut.flags.includes("tc"));
  assert.deepEqual(linesOf(cut), ["start.test 2 1", "start.test 2 1"]);
  assert.deepEqual(addressesIn(cut), ["1.2.3.1", "1.2.3.2"]);
  for (const [reply, endsChain] of [
    [upstream, false],
    [aReplyTo(query, 0, []), true],
    [aReplyTo(query, 2, []), true],
  ] as const) {
    const { answers } = readReply(replyToAlias(reply, alias, endsChain));
    assert.ok(answers.every(({ type }) => type === TYPE.CNAME));
  }
  for (let at = 12; at < upstream.length; at++) {
    for (const value of [0, 1, 0x3f, 0x40, 0xc0, 0xff]) {
      const changed = Buffer.from(upstream);
      changed[at] = value;
      const reply = replyToAlias(changed, alias, true);
      assert.ok(reply.length <= alias.limit);
      assert.equal(readReply(reply).question?.name, "start.test");
    }
  }
});

test("any bytes as an upstream reply become a reply of ours", () => {
  const deferred = deferredFor("far.shop.test", TYPE.A);
  const alias = deferred.alias ?? assert.fail();
  const valid = aReplyTo(deferred.query, 0, [
    aRecord({ owner: aPointer(12), type: TYPE.MX, data: Buffer.concat([u16(1), aPointer(12)]) }),
    aRecord({ owner: aPointer(16), type: TYPE.SRV, data: Buffer.concat([u16(1), u16(1), u16(1), aName("a.b")]) }),
  ]);
  for (let at = 12; at < valid.length; at++) {
    for (const value of [0, 1, 0x3f, 0x40, 0xc0, 0xff]) {
      const changed = Buffer.from(valid);
      changed[at] = value;
      const reply = replyToAlias(changed, alias);
      assert.ok(reply.length <= alias.limit);
      assert.equal(readName(reply, 12).text, "far.shop.test");
    }
    const cut = replyToAlias(valid.subarray(0, at), alias);
    assert.equal(readName(cut, 12).text, "far.shop.test");
  }
});

function deferredFor(name: string, type: number, parts = {}): Extract<AnswerResult, { kind: "deferred" }>["deferred"] {
  const result = ask(name, type, client(), parts);
  assert.equal(result.kind, "deferred");
  return result.deferred;
}

test("a CNAME to an upstream name is routed once", () => {
  const trace = new Trace();
  const block = Buffer.alloc(SLOT_BYTES);
  const length = aQuery({ name: "far.shop.test" }).copy(block);
  new Answerer(DEFAULT_BEHAVIOUR).explain(client(), block, length, false, trace);
  const layers = trace.steps.map(({ layer }) => layer);
  assert.deepEqual(layers.slice(layers.indexOf("route")), ["route", "special", "cache"]);
});
