// Proves which records of a reply belong to its question.

import assert from "node:assert/strict";
import { test } from "node:test";

import { scrub, readReply as readUpstream } from "../../../../src/query/wire/scrub.ts";
import { TYPE, aName, aPointer, aQuery, aRecord, u16 } from "../../../support/scripted/builders.ts";
import { readReply } from "../../support/reply.ts";

const ADDRESS = Buffer.of(192, 0, 2, 1);
const SOA_DATA = Buffer.concat([aName("ns.example.org"), aName("mail.example.org"), Buffer.alloc(20)]);
const DS = 43;
const RRSIG = 46;
const NSEC = 47;

test("an answer owned by the queried name is unchanged", () => {
  const reply = aReply({ answers: [address(aPointer(12)), address(aPointer(12))], additionals: [opt()] });
  assert.equal(scrub(reply), reply);
});

test("an answer about another name is rejected", () => {
  for (const owner of ["victim.example.test", "org", "example.org", "a.www.example.org"]) {
    assert.equal(scrub(aReply({ answers: [address(owner)] })), "the reply is about another name", owner);
  }
});

test("names are compared ignoring letter case and compression", () => {
  for (const owner of ["WWW.Example.ORG", Buffer.concat([Buffer.from("\x03wWw"), aPointer(16)])]) {
    const reply = aReply({ answers: [address(owner)] });
    assert.equal(scrub(reply), reply);
  }
});

test("a chain of aliases is followed in any order of records", () => {
  const links = [
    cname("www.example.org", "a.example.net"),
    cname("a.example.net", "b.example.net"),
    address("b.example.net"),
  ];
  for (const order of [links, links.toReversed(), [links[1], links[2], links[0]] as Buffer[]]) {
    const reply = aReply({ answers: order });
    assert.equal(scrub(reply), reply);
  }
  const unfinished = aReply({ answers: links.slice(0, 2) });
  assert.equal(scrub(unfinished), unfinished, "a chain without an end is an answer without one");
});

test("records beside the chain are removed, and the rest can be parsed", () => {
  const reply = aReply({
    answers: [
      address("victim.example.test"),
      cname(aPointer(12), "a.example.net"),
      aRecord({ owner: "a.example.net", type: TYPE.MX, data: Buffer.concat([u16(10), aName("mx.example.net")]) }),
      address("a.example.net"),
    ],
    authorities: [
      aRecord({ owner: "example.net", type: TYPE.NS, data: aName("ns.example.net") }),
      aRecord({ owner: "example.test", type: TYPE.NS, data: aName("ns.example.test") }),
    ],
    additionals: [address("ns.example.net"), address("mx.example.net"), address("ns.example.test"), opt()],
  });
  const rest = scrub(reply);
  assert.ok(Buffer.isBuffer(rest));
  assert.ok(readUpstream(Buffer.from(rest), true));
  const { counts, answers, authorities, additionals, id } = readReply(rest);
  assert.equal(id, reply.readUInt16BE(0));
  assert.deepEqual(counts, [1, 3, 1, 3]);
  assert.deepEqual(
    [answers, authorities, additionals].map((section) => section.map(({ owner }) => owner)),
    [["www.example.org", "a.example.net", "a.example.net"], ["example.net"], ["ns.example.net", "mx.example.net", "."]],
  );
});

test("signatures and proofs of the chain stay", () => {
  const signature = (owner: string, type: number): Buffer =>
    aRecord({
      owner,
      type: RRSIG,
      data: Buffer.concat([u16(type), Buffer.alloc(16), aName("example.org"), Buffer.alloc(8)]),
    });
  const reply = aReply({
    answers: [
      cname("www.example.org", "a.example.org"),
      signature("www.example.org", TYPE.CNAME),
      address("a.example.org"),
    ],
    authorities: [
      aRecord({
        owner: "zz.example.org",
        type: NSEC,
        data: Buffer.concat([aName("example.org"), Buffer.of(0, 1, 64)]),
      }),
      signature("zz.example.org", NSEC),
      aRecord({ owner: "sub.example.org", type: DS, data: Buffer.alloc(8) }),
    ],
  });
  assert.equal(scrub(reply), reply);
});

test("a DNAME counts with the CNAME that follows from it, or without one", () => {
  const dname = aRecord({ owner: "example.org", type: TYPE.DNAME, data: aName("example.net") });
  for (const answers of [
    [dname, cname("www.example.org", "www.example.net"), address("www.example.net")],
    [address("www.example.net"), dname],
  ]) {
    const reply = aReply({ answers });
    assert.equal(scrub(reply), reply);
  }
  const forged = aReply({ answers: [dname, cname("www.example.org", "www.evil.test"), address("www.evil.test")] });
  assert.equal(scrub(forged), "the reply has a CNAME that does not match its DNAME");
});

test("loops of aliases, and too many of them, are rejected", () => {
  const circle = [cname("www.example.org", "a.example.org"), cname("a.example.org", "www.example.org")];
  assert.equal(scrub(aReply({ answers: circle })), "the reply has a loop of aliases");
  const long = Array.from({ length: 20 }, (_, index) =>
    cname(index === 0 ? "www.example.org" : `n${index}.test`, `n${index + 1}.test`),
  );
  assert.equal(scrub(aReply({ answers: long })), "the reply has too many aliases");
});

test("records of another class do not answer the question", () => {
  const chaos = aRecord({ owner: aPointer(12), type: TYPE.A, class: 3, data: ADDRESS });
  assert.equal(scrub(aReply({ answers: [chaos] })), "the reply is about another name");
});

test("a referral to the root or to an unrelated zone is rejected; one to a child zone is passed on", () => {
  for (const zone of [".", "test", "a.www.example.org"]) {
    const up = aReply({ authorities: [aRecord({ owner: zone, type: TYPE.NS, data: aName("ns.test") })] });
    assert.equal(scrub(up), "the reply is an upward referral", zone);
  }
  const down = aReply({
    authorities: [aRecord({ owner: "example.org", type: TYPE.NS, data: aName("ns.example.org") })],
  });
  assert.equal(scrub(down), down);
});

test("a negative answer keeps the SOA of its zone, and no other", () => {
  for (const owner of ["example.org", "org", "."]) {
    const reply = aReply({ rcode: 3, authorities: [aRecord({ owner, type: TYPE.SOA, data: SOA_DATA })] });
    assert.equal(scrub(reply), reply, owner);
  }
  const strange = scrub(
    aReply({ rcode: 3, authorities: [aRecord({ owner: "test", type: TYPE.SOA, data: SOA_DATA })] }),
  );
  assert.ok(Buffer.isBuffer(strange));
  assert.deepEqual(readReply(strange).counts, [1, 0, 0, 0]);
});

test("an alias to a name that does not exist is a negative answer, whatever else there is", () => {
  const reply = aReply({
    rcode: 3,
    answers: [cname("www.example.org", "gone.example.net"), address("victim.test")],
    authorities: [aRecord({ owner: "example.net", type: TYPE.SOA, data: SOA_DATA })],
  });
  const rest = scrub(reply);
  assert.ok(Buffer.isBuffer(rest));
  assert.deepEqual(readReply(rest).counts, [1, 1, 1, 0]);
  assert.equal(readReply(rest).rcode, 3);
});

test("ANY and meta queries follow no chain", () => {
  const any = aReply({ type: TYPE.ANY, answers: [address("victim.example.test")] });
  assert.equal(scrub(any), any);
  const refusal = aQuery({ flags: 0x8181, counts: [0, 0, 0, 0] }).subarray(0, 12);
  assert.equal(scrub(refusal), refusal);
});

test("an unknown type is passed on byte for byte, also in a rebuilt reply", () => {
  const data = Buffer.from("c00cc00c00ff", "hex");
  const unknown = aRecord({ owner: "www.example.org", type: 65_280, data });
  const rest = scrub(aReply({ type: 65_280, answers: [unknown, address("victim.test")] }));
  assert.ok(Buffer.isBuffer(rest));
  assert.deepEqual(
    readReply(rest).answers.map((one) => one.data),
    [data],
  );
});

test("names that take too long to write out make the reply unreadable", () => {
  const label = `${"a".repeat(62)}.`.repeat(4);
  const long = aRecord({ owner: "www.example.org", type: TYPE.CNAME, data: aName(label) });
  const target = 12 + aName("www.example.org").length + 4 + long.length - aName(label).length;
  const owners = Array.from({ length: 4000 }, (_, index) =>
    aRecord({ owner: Buffer.concat([Buffer.of(1, index % 256), aPointer(target + 63)]), type: TYPE.A, data: ADDRESS }),
  );
  const reply = aReply({ answers: [long, ...owners].slice(0, 3000) });
  assert.ok(reply.length < 65_535);
  assert.equal(scrub(reply), "the reply cannot be parsed");
});

test("aliases that expand to a name beyond the limit make the reply unreadable, at once", () => {
  const labels = Array.from({ length: 126 }, () => "b").join(".");
  const grows = aReply({ answers: [aRecord({ owner: ".", type: TYPE.DNAME, data: aName(labels) })] });
  assert.equal(scrub(grows), "the reply cannot be parsed");
});

test("names in the kept records that take too long to write out make the reply unreadable, too", () => {
  const long = aRecord({ owner: "www.example.org", type: TYPE.NS, data: aName(`${"a".repeat(62)}.`.repeat(4)) });
  const target = 12 + aName("www.example.org").length + 4 + long.length - 253;
  const servers = Array.from({ length: 3000 }, (_, index) => {
    const data = Buffer.concat([Buffer.of(1, index % 256), aPointer(target + 63)]);
    return aRecord({ owner: aPointer(12), type: TYPE.NS, data });
  });
  const reply = aReply({ type: TYPE.NS, answers: [long, ...servers, address("victim.test")] });
  assert.equal(scrub(reply), "the reply cannot be parsed");
});

type ReplyParts = {
  readonly type?: number;
  readonly rcode?: number;
  readonly answers?: readonly Buffer[];
  readonly authorities?: readonly Buffer[];
  readonly additionals?: readonly Buffer[];
};

function aReply({ type = TYPE.A, rcode = 0, ...sections }: ReplyParts): Buffer {
  return aQuery({ flags: 0x8180 | rcode, name: "www.example.org", type, ...sections });
}

function address(owner: string | Buffer): Buffer {
  return aRecord({ owner, type: TYPE.A, ttl: 60, data: ADDRESS });
}

function cname(owner: string | Buffer, target: string): Buffer {
  return aRecord({ owner, type: TYPE.CNAME, ttl: 60, data: aName(target) });
}

function opt(): Buffer {
  return aRecord({ type: TYPE.OPT, class: 1232 });
}
