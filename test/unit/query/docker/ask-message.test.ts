// The question to Docker's resolver carries the guard, and of the reply only what that resolver wrote itself counts.

import assert from "node:assert/strict";
import { test } from "node:test";

import { decode } from "dns-packet";

import { wireLabels } from "../../../../src/base/dns/name.ts";
import { TYPE } from "../../../../src/base/dns/record-type.ts";
import { LIMITS } from "../../../../src/base/limits.ts";
import type { DockerQuestion } from "../../../../src/base/model/visible-names.ts";
import { type DockerRecords, dockerQuery, readDockerReply } from "../../../../src/query/forward/docker-forwarder.ts";
import { isReadable, Records } from "../../../../src/query/wire/records.ts";

const ASK: DockerQuestion = {
  labels: wireLabels("tasks.web") ?? assert.fail(),
  kind: "name",
  hasIPv6: false,
  isGuarded: true,
  isOnlyHere: false,
  isDenied: false,
  whose: "the swarm",
};
const RA_NOERROR = 0x8180;
const ADDRESS = Buffer.from("0a000103", "hex");

function reply(flags: number, records: readonly Buffer[], additionals = 0, type: number = TYPE.A): Buffer {
  const { message: query, questionEnd } = dockerQuery(ASK, type, 7);
  const message = Buffer.concat([query.subarray(0, questionEnd), ...records]);
  message.writeUInt16BE(flags, 2);
  message.writeUInt16BE(records.length - additionals, 6);
  message.writeUInt16BE(additionals, 10);
  return message;
}

function read(message: Buffer, type: number, isGuarded: boolean): DockerRecords {
  return readDockerReply(message, dockerQuery({ ...ASK, isGuarded }, type, 7));
}

function record(type: number, ttl: number, data: Buffer): Buffer {
  const fixed = Buffer.from([0xc0, 12, type >> 8, type, 0, 1, 0, 0, ttl >> 8, ttl, data.length >> 8, data.length]);
  return Buffer.concat([fixed, data]);
}

test("a guarded question is well-formed, has an SVCB record that names no protocol, and room for long replies", () => {
  const { message } = dockerQuery(ASK, TYPE.A, 7);
  assert.equal(isReadable(message, new Records(), false), true);
  const { id, questions, additionals } = decode(message);
  assert.deepEqual([id, questions?.map(({ name, type }) => `${name} ${type}`)], [7, ["tasks.web A"]]);
  assert.deepEqual(
    additionals?.map((each) => each.type),
    ["UNKNOWN_64", "OPT"],
  );
  assert.ok(message.includes(Buffer.from([0, 1, 0, 0, 1, 0, 1, 0])), "priority 1, the root, alpn with an empty name");
  assert.equal(decode(dockerQuery({ ...ASK, isGuarded: false }, TYPE.A, 7).message).additionals?.length, 1);
});

test("with the guard, an answer is Docker's, an error means an unknown name, and a refusal no answer at all", () => {
  const answer = read(reply(RA_NOERROR, [record(TYPE.A, 600, ADDRESS), record(TYPE.A, 600, ADDRESS)]), TYPE.A, true);
  assert.deepEqual(answer, { kind: "records", data: Buffer.concat([ADDRESS, ADDRESS]) });
  assert.deepEqual(read(reply(RA_NOERROR, [], 0, TYPE.AAAA), TYPE.AAAA, true), {
    kind: "records",
    data: Buffer.alloc(0),
  });
  assert.equal(read(reply(0x8102, []), TYPE.A, true).kind, "unknown");
  assert.equal(read(reply(0x8183, []), TYPE.A, true).kind, "unknown");
  assert.equal(read(reply(0x8105, []), TYPE.A, true).kind, "away");
  assert.equal(read(reply(0x8101, []), TYPE.A, true).kind, "away");
});

test("without the guard, only what looks as Docker writes it counts as known", () => {
  const own = record(TYPE.A, 600, ADDRESS);
  const kinds = {
    own: reply(RA_NOERROR, [own]),
    "another TTL": reply(RA_NOERROR, [record(TYPE.A, 300, ADDRESS)]),
    "an OPT": reply(RA_NOERROR, [own, Buffer.from([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0])], 1),
    authoritative: reply(RA_NOERROR | 0x400, [own]),
    "without recursion": reply(0x8100, [own]),
    empty: reply(RA_NOERROR, []),
  };
  const found = Object.entries(kinds).map(([what, message]) => [what, read(message, TYPE.A, false).kind]);
  assert.deepEqual(Object.fromEntries(found), {
    own: "records",
    "another TTL": "unknown",
    "an OPT": "unknown",
    authoritative: "unknown",
    "without recursion": "unknown",
    empty: "unknown",
  });
});

test("records that are cut or of the wrong size are left out, and a compressed name is written out", () => {
  const odd = [record(TYPE.A, 600, Buffer.of(1, 2, 3)), record(TYPE.A, 600, ADDRESS)];
  assert.deepEqual(read(reply(RA_NOERROR, odd), TYPE.A, true), { kind: "records", data: ADDRESS });
  const cut = reply(RA_NOERROR, [record(TYPE.A, 600, ADDRESS)]).subarray(0, -2);
  assert.deepEqual(read(cut, TYPE.A, true), { kind: "records", data: Buffer.alloc(0) });
  const target = Buffer.from([3, 0x77, 0x65, 0x62, 0xc0, 12]);
  const pointer = read(reply(RA_NOERROR, [record(TYPE.PTR, 600, target)], 0, TYPE.PTR), TYPE.PTR, true);
  assert.deepEqual(pointer, { kind: "records", data: Buffer.from("\x03web\x05tasks\x03web\0", "latin1") });
  const endless = Buffer.from([0xc0, 39]);
  const loop = read(reply(RA_NOERROR, [record(TYPE.PTR, 600, endless)], 0, TYPE.PTR), TYPE.PTR, true);
  assert.equal(loop.kind, "records");
  // The question's name of 9 bytes, behind labels that make it longer than any name may be.
  const label = Buffer.concat([Buffer.of(63), Buffer.alloc(63, 0x61)]);
  const long = Buffer.concat([label, label, label, label, Buffer.of(0xc0, 12)]);
  const tooLong = read(reply(RA_NOERROR, [record(TYPE.PTR, 600, long)], 0, TYPE.PTR), TYPE.PTR, true);
  assert.deepEqual(tooLong, { kind: "records", data: new Uint8Array(0) });
});

test("a reply to another question, or none, is no answer; a truncated one is what is left of it", () => {
  const own = record(TYPE.A, 600, ADDRESS);
  const good = reply(RA_NOERROR, [own]);
  const other = Buffer.from(good);
  other.write("webs", 13, "latin1");
  const noQuestion = Buffer.from(good);
  noQuestion.writeUInt16BE(0, 4);
  const echo = Buffer.from(good);
  echo[2] = 0x01;
  const kinds = {
    "another name": other,
    "another type": reply(RA_NOERROR, [own], 0, TYPE.AAAA),
    "no question": noQuestion,
    "a header": reply(0x8183, []).subarray(0, 12),
    "the query itself": echo,
    "truncated to nothing": reply(0x8380, []),
  };
  for (const [what, message] of Object.entries(kinds)) assert.equal(read(message, TYPE.A, true).kind, "away", what);
  assert.deepEqual(read(reply(0x8380, [own]), TYPE.A, true), { kind: "records", data: ADDRESS });
});

test("aliases lead nowhere, no label is longer than 63 bytes, and there are no more addresses than the limit", () => {
  const toItself = record(TYPE.CNAME, 600, Buffer.of(0xc0, 12));
  assert.deepEqual(read(reply(RA_NOERROR, [toItself, toItself]), TYPE.A, true), {
    kind: "records",
    data: Buffer.alloc(0),
  });
  const label = Buffer.concat([Buffer.of(100), Buffer.alloc(100, 0x61), Buffer.of(0)]);
  const named = read(reply(RA_NOERROR, [record(TYPE.PTR, 600, label)], 0, TYPE.PTR), TYPE.PTR, true);
  assert.deepEqual(named, { kind: "records", data: new Uint8Array(0) });
  const many = read(
    reply(
      RA_NOERROR,
      Array.from({ length: 4_000 }, () => record(TYPE.A, 600, ADDRESS)),
    ),
    TYPE.A,
    true,
  );
  assert.equal(many.kind === "records" && many.data.length, LIMITS.askedAddresses * ADDRESS.length);
});
