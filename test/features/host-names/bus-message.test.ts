// Proves the bytes of D-Bus messages against those of a real bus, and that damaged ones end as a Fault.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Fault } from "../../../src/base/lib/fault.ts";
import { BusWriter, callBytes, messageLength, readMessage } from "../../../src/features/host-names/bus-message.ts";

const CALL = {
  destination: "org.freedesktop.resolve1",
  path: "/org/freedesktop/resolve1",
  interface: "org.freedesktop.resolve1.Manager",
  member: "SetLinkDomains",
  signature: "ia(sb)",
  write: (w: BusWriter): void => {
    w.u32(7);
    w.structs(["docker", "16.30.172.in-addr.arpa"], (name) => {
      w.string(name);
      w.boolean(true);
    });
  },
};

test("a call reads back as it was written", () => {
  const bytes = callBytes(CALL, 3);
  assert.equal(messageLength(bytes), bytes.length);
  const { type, member, replySerial, error, body } = readMessage(bytes);
  assert.deepEqual([type, member, replySerial, error], [1, "SetLinkDomains", 0, ""]);
  assert.equal(body.u32(), 7);
  const domains = body.structs(() => [body.string(), body.boolean()]);
  assert.deepEqual(domains, [
    ["docker", true],
    ["16.30.172.in-addr.arpa", true],
  ]);
});

test("an empty list and an array of bytes keep their padding", () => {
  const writer = new BusWriter();
  writer.u32(1);
  writer.structs([], () => undefined);
  writer.structs([Buffer.of(127, 0, 0, 153)], (bytes) => {
    writer.u32(2);
    writer.data(bytes);
  });
  assert.equal(writer.bytes.toString("hex"), "01000000000000000c0000000000000002000000040000007f000099");
});

test("the length of a message is unknown before its first 16 bytes", () => {
  const bytes = callBytes(CALL, 3);
  assert.equal(messageLength(bytes.subarray(0, 15)), undefined);
  assert.equal(messageLength(bytes.subarray(0, 16)), bytes.length);
});

test("the length of a big-endian message is known, although it is not read", () => {
  const big = callBytes(CALL, 3);
  const { length } = big;
  big[0] = 0x42;
  for (const at of [4, 12]) big.subarray(at, at + 4).reverse();
  assert.equal(messageLength(big), length);
  assert.throws(() => readMessage(big), Fault);
});

test("what is no message, or a damaged one, is a Fault", () => {
  const good = callBytes(CALL, 3);
  assert.throws(() => messageLength(Buffer.alloc(16)), Fault);
  for (let at = 12; at < good.length; at++) {
    for (const value of [0, 1, 0x7f, 0xff]) {
      const damaged = Buffer.from(good);
      damaged[at] = value;
      try {
        readMessage(damaged);
      } catch (error) {
        assert.ok(error instanceof Fault, `byte ${at} as ${value}: ${String(error)}`);
      }
    }
  }
});

test("a message with more header fields than any of the bus is a Fault", () => {
  const header = (fields: number): Buffer => {
    const bytes = Buffer.alloc(16 + fields * 8);
    bytes.set([0x6c, 4, 0, 1]);
    // Without the padding of the last one.
    bytes.writeUInt32LE(fields * 8 - 2, 12);
    // A field of a number that nobody knows, with an empty signature.
    for (let at = 16; at < bytes.length; at += 8) bytes.set([200, 1, 0x67, 0, 0, 0], at);
    return bytes;
  };
  assert.equal(readMessage(header(1_000)).type, 4);
  assert.throws(() => readMessage(header(1_100)), Fault);
});
