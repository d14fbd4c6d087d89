/**
 * What is left of a reply for a container that is not given all addresses: any reply can be read afterwards, and has nothing that was to
 * be left out.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { readAddressBlock } from "../../../src/base/model/address.ts";
import { FamilyFilter } from "../../../src/features/families/family-filter.ts";
import { ONLY, type Reach } from "../../../src/features/families/reach.ts";
import { Records, isReadable } from "../../../src/query/wire/records.ts";
import { TYPE, aName, aPointer, aQuery, aRecord, anOpt, aReplyTo, u16 } from "../../support/scripted/builders.ts";
import { type Reply, readReply } from "../../unit/support/reply.ts";

const NAME = "start.test";
const LIMIT = 1232;
const TSIG = 250;
const AD = 0x20;
const ON_LINK: Reach = {
  ipv4: "all",
  ipv6: [readAddressBlock("fd00:1::/64") ?? assert.fail()],
};

const A = (last: number, owner: Buffer = aPointer(12)): Buffer =>
  aRecord({ owner, type: TYPE.A, ttl: 60, data: Buffer.of(192, 0, 2, last) });
const AAAA = (prefix: number, last: number, owner: Buffer = aPointer(12)): Buffer => {
  const data = Buffer.from("fd000000000000000000000000000000", "hex");
  data[3] = prefix;
  data[15] = last;
  return aRecord({ owner, type: TYPE.AAAA, ttl: 60, data });
};

function replyOf(type: number, answers: readonly Buffer[], additionals: readonly Buffer[] = []): Buffer {
  const message = Buffer.concat([aReplyTo(aQuery({ name: NAME, type }), 0, answers), ...additionals]);
  message.writeUInt16BE(additionals.length, 10);
  message[3] = (message[3] as number) | AD;
  return message;
}

function applied(reach: Reach, reply: Buffer, limit = LIMIT): Reply | undefined {
  const left = new FamilyFilter(reach, "").apply(reply, limit);
  if (left === undefined) return undefined;
  assert.ok(left.length <= limit);
  const copy = Buffer.from(left);
  assert.ok(isReadable(copy, new Records(), true), copy.toString("hex"));
  return readReply(copy);
}

function parameter(key: number, ...values: readonly Buffer[]): Buffer {
  const value = Buffer.concat(values);
  return Buffer.concat([u16(key), u16(value.length), value]);
}

/** Keys with the length of their values. */
function parametersOf(data: Buffer, targetBytes = 1): string[] {
  const found: string[] = [];
  for (let at = 2 + targetBytes; at < data.length; at += 4 + data.readUInt16BE(at + 2))
    found.push(`${data.readUInt16BE(at)}:${data.readUInt16BE(at + 2)}`);
  return found;
}

const FOUR = parameter(4, Buffer.of(192, 0, 2, 1), Buffer.of(192, 0, 2, 2));
const SIX = parameter(6, Buffer.alloc(16, 1), Buffer.from("fd000001000000000000000000000009", "hex"));
const https = (...parameters: readonly Buffer[]): Buffer =>
  aRecord({ type: TYPE.HTTPS, owner: aPointer(12), data: Buffer.concat([u16(1), Buffer.of(0), ...parameters]) });

test("an answer of the wrong family is empty, and its aliases stay", () => {
  assert.deepEqual(applied(ONLY.ipv4, replyOf(TYPE.AAAA, [AAAA(1, 1), AAAA(1, 2)]))?.answers, []);
  assert.deepEqual(applied(ONLY.ipv6, replyOf(TYPE.A, [A(1)]))?.answers, []);
  const cname = aRecord({ owner: aPointer(12), type: TYPE.CNAME, ttl: 60, data: aName("end.test") });
  const left = applied(ONLY.ipv4, replyOf(TYPE.AAAA, [cname, AAAA(1, 1, aPointer(12 + 16 + 12))]));
  assert.deepEqual(
    left?.answers.map(({ type, owner }) => [type, owner]),
    [[TYPE.CNAME, NAME]],
  );
  assert.equal(left?.flags.includes("ad"), false);
});

test("what is to stay as it is is not written anew", () => {
  for (const [reach, reply] of [
    [ONLY.ipv4, replyOf(TYPE.A, [A(1)])],
    [ONLY.ipv6, replyOf(TYPE.AAAA, [AAAA(1, 1)])],
    [ONLY.ipv4, replyOf(TYPE.MX, [aRecord({ type: TYPE.MX, data: Buffer.concat([u16(1), aName("m.test")]) })])],
    [ONLY.ipv4, replyOf(TYPE.HTTPS, [https(FOUR)])],
    [ONLY.ipv4, replyOf(TYPE.AAAA, [])],
    [ONLY.ipv4, aReplyTo(aQuery({ name: NAME, type: TYPE.AAAA }), 3, [AAAA(1, 1)])],
    [
      ONLY.ipv4,
      replyOf(TYPE.AAAA, [AAAA(1, 1)], [aRecord({ owner: aName("key"), type: TSIG, data: Buffer.alloc(26) })]),
    ],
    [ONLY.ipv4, Buffer.alloc(5)],
  ] as const)
    assert.equal(applied(reach, reply), undefined, reply.toString("hex"));
});

test("only what is not reached is taken out", () => {
  const left = applied(ON_LINK, replyOf(TYPE.AAAA, [AAAA(1, 1), AAAA(2, 1), AAAA(1, 2)]));
  assert.deepEqual(
    left?.answers.map(({ data }) => [data[3], data[15]]),
    [
      [1, 1],
      [1, 2],
    ],
  );
});

test("hints of services go with the addresses, and from what they call mandatory", () => {
  const alpn = parameter(1, Buffer.from("\x02h2"));
  const all = [parameter(0, u16(4), u16(6)), alpn, parameter(3, u16(443)), FOUR, parameter(5, Buffer.alloc(9)), SIX];
  const keys = (reach: Reach, ...parameters: readonly Buffer[]): string[] | undefined => {
    const data = applied(reach, replyOf(TYPE.HTTPS, [https(...parameters)]))?.answers[0]?.data;
    return data && parametersOf(data);
  };
  assert.deepEqual(keys(ONLY.ipv4, ...all), ["0:2", "1:3", "3:2", "4:8", "5:9"]);
  assert.deepEqual(keys(ONLY.ipv6, ...all), ["0:2", "1:3", "3:2", "5:9", "6:32"]);
  assert.deepEqual(keys(ON_LINK, ...all), ["0:4", "1:3", "3:2", "4:8", "5:9", "6:16"]);
  assert.deepEqual(keys(ONLY.ipv4, parameter(0, u16(6)), SIX), []);
  assert.equal(keys(ONLY.ipv4, FOUR), undefined);
});

test("other sections go on with their names, and the OPT is last", () => {
  const service = aRecord({
    type: TYPE.SRV,
    owner: aPointer(12),
    data: Buffer.concat([u16(0), u16(0), u16(80), aName("host.test")]),
  });
  const reply = replyOf(
    TYPE.SRV,
    [service],
    [AAAA(1, 1, aName("host.test")), A(1, aPointer(28 + 12 + 6)), anOpt({ udpSize: LIMIT })],
  );
  const left = applied(ONLY.ipv4, reply);
  assert.deepEqual(
    left?.additionals.map(({ type, owner }) => [type, owner]),
    [
      [TYPE.A, "host.test"],
      [41, "."],
    ],
  );
});

test("what does not fit any more with its names is truncated", () => {
  const long = aName(["a", "b", "c", "d"].map((each) => each.repeat(60)).join("."));
  const target = aRecord({ owner: aPointer(12), type: TYPE.CNAME, data: long });
  const services = Array.from({ length: 6 }, () =>
    aRecord({
      owner: aPointer(12),
      type: TYPE.SRV,
      data: Buffer.concat([u16(0), u16(0), u16(80), aPointer(28 + 12)]),
    }),
  );
  const left = applied(ONLY.ipv4, replyOf(TYPE.SRV, [target, AAAA(1, 1), ...services], [anOpt({})]), 512);
  assert.ok(left !== undefined && left.flags.includes("tc"));
  assert.deepEqual([left.answers.length, left.additionals.length], [1, 1]);
});

test("any damaged reply is left alone, or what is left of it can be read", () => {
  const valid = replyOf(
    TYPE.HTTPS,
    [
      aRecord({ owner: aPointer(12), type: TYPE.CNAME, data: aName("end.test") }),
      aRecord({ type: TYPE.HTTPS, owner: aPointer(40), data: Buffer.concat([u16(1), Buffer.of(0), FOUR, SIX]) }),
      AAAA(1, 1, aPointer(40)),
      aRecord({ type: 6, owner: aPointer(12), data: Buffer.concat([aPointer(40), aPointer(12), Buffer.alloc(20)]) }),
    ],
    [anOpt({})],
  );
  const filter = new FamilyFilter(ONLY.ipv4, "");
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 2, max: valid.length - 1 }), fc.integer({ min: 0, max: 255 })), {
        minLength: 1,
        maxLength: 4,
      }),
      fc.integer({ min: 12, max: valid.length }),
      (changes, length) => {
        const reply = Buffer.from(valid);
        for (const [at, value] of changes) reply[at] = value;
        for (const each of [reply, reply.subarray(0, length)]) {
          const left = filter.apply(each, 512);
          if (left === undefined) continue;
          assert.ok(left.length <= 512);
          // Whoever reads it finds the records that it announces.
          readReply(Buffer.from(left));
        }
      },
    ),
    { numRuns: 5_000 },
  );
});

test("names that expand without end cost no more than their message", () => {
  const step = (index: number): Buffer =>
    aRecord({
      owner: Buffer.concat([Buffer.from("\x01x"), aPointer(index === 0 ? 12 : 28 + (index - 1) * 18)]),
      type: TYPE.A,
      data: Buffer.of(1, 2, 3, 4),
    });
  const records = [...Array.from({ length: 3_000 }, (_, index) => step(Math.min(index, 115))), AAAA(1, 1)];
  const left = new FamilyFilter(ONLY.ipv4, "").apply(replyOf(TYPE.A, records), 65_535);
  assert.equal(left, undefined);
});
