// Proves parsing and formatting of addresses, with Node's IPv6 parser as the reference.

import assert from "node:assert/strict";
import { SocketAddress } from "node:net";
import { test } from "node:test";

import * as fc from "fast-check";

import {
  addressBytes,
  isHostScoped,
  isLoopback,
  isOpenEnded,
  reverseLabels,
  socketAddress,
} from "../../../../src/base/model/address.ts";
import { presentation } from "../../../../src/base/dns/name.ts";
import { runs } from "../../../support/rig/runs.ts";

test("addressBytes() parses IPv4", () => {
  assert.deepEqual([...(addressBytes("192.0.2.255") ?? [])], [192, 0, 2, 255]);
  assert.deepEqual([...(addressBytes("0.0.0.0") ?? [])], [0, 0, 0, 0]);
});

test("addressBytes() ignores a zone", () => {
  assert.deepEqual(addressBytes("fe80::1%eth0"), addressBytes("fe80::1"));
  assert.deepEqual(addressBytes("fe80::1%2"), addressBytes("fe80::1"));
});

test("addressBytes() rejects other texts", () => {
  for (const text of [
    "",
    "1.2.3",
    "1.2.3.4.5",
    "1.2.3.256",
    "01.2.3.4",
    " 1.2.3.4",
    "1.2.3.4/24",
    "1.2.3.4%eth0",
    "fe80::1%",
    "fe80::1%\u001b]0;x\u0007",
    "fe80::1%a b",
    "fe80::1%sixteen-letters-",
    "1.2.3.4:53",
    "[::1]",
    "::1/64",
    ":::",
    "1::2::3",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "12345::",
    "::g",
    "<nil>",
    "invalid IP",
    "web",
  ]) {
    assert.equal(addressBytes(text), undefined, JSON.stringify(text));
  }
});

test("addressBytes() parses every form of an IPv6 address as Node does", () => {
  for (const text of [
    "::",
    "::1",
    "1::",
    "1:2:3:4:5:6:7::",
    "::2:3:4:5:6:7:8",
    "1:2:3:4:5:6:7:8",
    "fd11::abcd:0:1",
    "FD11::ABCD",
    "::ffff:192.0.2.1",
    "::192.0.2.1",
    "64:ff9b::192.0.2.33",
    "1:2:3:4:5:6:192.0.2.1",
    "0001:0002::0008",
  ]) {
    assert.equal(canonical(inFull(addressBytes(text) ?? new Uint8Array(0))), canonical(text), text);
  }
});

test("addressBytes() agrees with Node on any text of an IPv6 address", () => {
  fc.assert(
    fc.property(fc.ipV6(), (text) => {
      const bytes = addressBytes(text);
      // The generator follows the grammar, where "::" may stand for no group at all; Node decides.
      const theirs = canonicalOrNothing(text);
      if (theirs === undefined) assert.equal(bytes, undefined);
      else assert.equal(canonical(inFull(bytes ?? new Uint8Array(0))), theirs);
    }),
    { numRuns: runs(200) },
  );
});

test("any sixteen bytes survive formatting and parsing", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), (bytes) => {
      assert.deepEqual(addressBytes(canonical(inFull(bytes))), bytes);
    }),
  );
});

test("any four bytes survive formatting and parsing", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 4, maxLength: 4 }), (bytes) => {
      assert.deepEqual(addressBytes(bytes.join(".")), bytes);
    }),
  );
});

test("reverseLabels() reverses the bytes of an IPv4 address, in decimal", () => {
  assert.equal(reverseText("172.20.0.2"), "2.0.20.172");
  assert.equal(reverseText("255.0.0.10"), "10.0.0.255");
});

test("reverseLabels() reverses the nibbles of an IPv6 address", () => {
  assert.equal(reverseText("2001:db8::567:89ab"), "b.a.9.8.7.6.5.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2");
  assert.equal(reverseText("::"), Array.from({ length: 32 }, () => "0").join("."));
});

test("isOpenEnded() finds addresses whose text begins or ends with two colons", () => {
  assert.deepEqual(
    ["::", "::1", "fd11::", "fd11::1", "1:2:3:4:5:6:7:8", "10.0.0.1"].map((text) => isOpenEnded(text)),
    [true, true, true, false, false, false],
  );
});

for (const [texts, isIt] of [
  [["127.0.0.1", "127.255.0.9", "0.0.0.0", "0.1.2.3", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1"], true],
  [["169.254.169.254", "::ffff:169.254.1.1", "fe80::1", "febf::1", "fe80::1%eth0", "64:ff9b::7f00:1"], true],
  [["224.0.0.251", "255.255.255.255", "ff02::fb", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"], true],
  [["nonsense", ""], true],
  [["10.0.0.1", "192.168.1.1", "8.8.8.8", "169.253.0.1", "100.100.100.201", "223.255.255.255"], false],
  [["fd00::53", "2001:db8::1", "fec0::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "fd00:ec2::253"], false],
] as const) {
  for (const text of texts) {
    test(`isOfOneHost() ${isIt ? "keeps" : "lets"} "${text}"${isIt ? "" : " pass"}`, () => {
      assert.equal(isHostScoped(text), isIt);
    });
  }
}

test("socketAddress() lays out struct sockaddr_in", () => {
  assert.equal(socketAddress(Buffer.of(127, 0, 0, 11), 53).toString("hex"), "020000357f00000b0000000000000000");
});

test("socketAddress() lays out struct sockaddr_in6, with the scope in native byte order", () => {
  const address = addressBytes("fe80::2") ?? new Uint8Array(0);
  assert.equal(
    socketAddress(address, 0x1234, 7).toString("hex"),
    "0a00123400000000fe80000000000000000000000000000207000000",
  );
});

function inFull(bytes: Uint8Array): string {
  return (Buffer.from(bytes).toString("hex").match(/.{4}/g) ?? []).join(":");
}

function canonical(text: string): string {
  return new SocketAddress({ address: text, family: "ipv6" }).address;
}

function canonicalOrNothing(text: string): string | undefined {
  try {
    return canonical(text);
  } catch {
    return undefined;
  }
}

function reverseText(address: string): string {
  const labels = reverseLabels(addressBytes(address) ?? new Uint8Array(0));
  return presentation(labels, 0, labels.length);
}

for (const [address, expected] of [
  ["127.0.0.1", true],
  ["127.255.255.254", true],
  ["::1", true],
  ["128.0.0.1", false],
  ["10.127.0.11", false],
  ["::2", false],
  ["127.example", false],
  ["", false],
] as const) {
  test(`"${address}" is ${expected ? "" : "not "}a loopback address`, () =>
    assert.equal(isLoopback(address), expected));
}
