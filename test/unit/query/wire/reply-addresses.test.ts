// Proves the answers with addresses: owners in full if they fit, compressed if not, and truncated if necessary.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { type Behaviour, STRICT_BEHAVIOUR } from "../../../../src/base/model/behaviour.ts";
import { addressAnswer } from "../../../../src/query/wire/reply.ts";
import { TYPE, aQuery, u16 } from "../../../support/scripted/builders.ts";
import { OFFSET, type Reply, placed, readReply } from "../../support/reply.ts";

const PLAIN: Behaviour = { ...STRICT_BEHAVIOUR, ttlSeconds: 7 };

test("one address repeats the owner in its original letter case", () => {
  const reply = addresses(aQuery({ name: "Web" }), 1, 4, PLAIN, 512);
  assert.deepEqual(
    reply.answers.map(({ owner, type, class: recordClass, ttl, data }) => [owner, type, recordClass, ttl, data]),
    [["Web", TYPE.A, 1, 7, u32(0)]],
  );
});

test("an answer is of class IN, whatever class was queried", () => {
  const reply = addresses(aQuery({ class: 3 }), 1, 4, PLAIN, 512);
  assert.deepEqual([reply.question?.class, reply.answers[0]?.class], [3, 1]);
});

test("26 addresses of a name of 32 octets take 464, compressed, in one message of 512", () => {
  const query = aQuery({ name: "a".repeat(30) });
  assert.equal(addressBytesOf(query, 26, 4, PLAIN, 512).length, 464);
  assert.equal(addresses(query, 26, 4, PLAIN, 512).answers.length, 26);
});

test("the first answer that does not fit is left out, and the reply is truncated", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(4 as const, 16 as const),
      fc.integer({ min: 1, max: 250 }),
      fc.integer({ min: 0, max: 300 }),
      fc.integer({ min: 512, max: 1500 }),
      (size, nameBytes, count, limit) => {
        const query = aQuery({ name: labelsOf(nameBytes), type: size === 4 ? TYPE.A : TYPE.AAAA });
        const ownerBytes = query.length - 12 - 4;
        const most = Math.floor((limit - 12 - (ownerBytes + 4)) / (12 + size));
        const message = addressBytesOf(query, count, size, PLAIN, limit);
        const reply = readReply(message);
        assert.equal(reply.answers.length, Math.min(count, most));
        assert.equal(reply.flags.includes("tc"), count > most);
        assert.ok(message.length <= limit);
        // In full if all of them fit, compressed otherwise.
        const isFull = query.length + count * (ownerBytes + 10 + size) <= limit;
        const [first] = reply.answers;
        if (first !== undefined) assert.equal(first.end - first.start, (isFull ? ownerBytes : 2) + 10 + size);
      },
    ),
  );
});

test("with an OPT there are eleven octets less for answers", () => {
  const query = aQuery({ name: "a".repeat(30), opt: { udpSize: 512 } });
  const behaviour = { ...PLAIN, compresses: true, speaksEdns: true };
  const most = Math.floor((512 - 12 - 36 - 11) / 16);
  const reply = addresses(query, 40, 4, behaviour, 512);
  assert.deepEqual([reply.answers.length, reply.additionals.length, reply.flags], [most, 1, "qr tc rd ra"]);
});

test("answers are in the order of the shuffle", () => {
  const order = Uint16Array.of(2, 0, 1);
  const query = aQuery();
  const reply = readReply(addressBytesOf(query, 3, 4, PLAIN, 512, () => order));
  assert.deepEqual(
    reply.answers.map(({ data }) => data.readUInt32BE()),
    [...order],
  );
});

test("4,095 addresses fit into a TCP message, and no more", () => {
  const reply = addresses(aQuery({ name: "a" }), 5000, 4, PLAIN, 65_535);
  assert.equal(reply.answers.length, Math.floor((65_535 - 12 - 7) / 16));
  assert.deepEqual([reply.counts[1], reply.flags], [4094, "qr tc rd ra"]);
});

function addresses(query: Buffer, count: number, size: 4 | 16, behaviour: Behaviour, limit: number): Reply {
  return readReply(addressBytesOf(query, count, size, behaviour, limit));
}

// Each address holds its own number.
function addressBytesOf(
  query: Buffer,
  count: number,
  size: 4 | 16,
  behaviour: Behaviour,
  limit: number,
  shuffle = inOrder,
): Buffer {
  const { block, question } = placed(query);
  const packed = Buffer.concat(
    Array.from({ length: count }, (_, index) => Buffer.concat([Buffer.alloc(size - 4), u32(index)])),
  );
  const length = addressAnswer(block, question, packed, size, {
    limit,
    shuffle,
    behaviour,
    ttlSeconds: behaviour.ttlSeconds,
    isSorted: false,
  });
  return block.subarray(OFFSET, OFFSET + length);
}

function u32(value: number): Buffer {
  return Buffer.concat([u16(value >>> 16), u16(value & 0xffff)]);
}

// A name of about this many octets.
function labelsOf(bytes: number): string {
  const labels = Array.from({ length: Math.floor(bytes / 64) }, () => "a".repeat(63));
  return [...labels, "b".repeat(Math.max(1, (bytes % 64) - 1))].join(".");
}

function inOrder(count: number): Uint16Array {
  return Uint16Array.from({ length: count }, (_, index) => index);
}
