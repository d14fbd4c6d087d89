/** Messages of dnstap as bytes, and what is left of a message whose names nobody may read. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { BadSettings } from "../../../src/config/bad-settings.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { DNSTAP, socketPath } from "../../../src/features/dnstap/feature.ts";
import { controlFrame } from "../../../src/features/dnstap/frame-stream.ts";
import { MessageWriter, TAPPED, type TappedMessage, withoutNames } from "../../../src/features/dnstap/dnstap.ts";
import { check } from "../../support/program/command.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { TYPE, aQuery, aReplyTo } from "../../support/scripted/builders.ts";

const folder = makeFolder("messages");
const QUERY = aQuery({ name: "host.test", type: TYPE.A });
const writer = new MessageWriter("machine", "web");

function aMessage(of: Partial<TappedMessage> = {}): TappedMessage {
  const bytes = of.bytes ?? QUERY;
  return {
    type: TAPPED.clientQuery,
    isTls: false,
    isStream: false,
    queryAddress: undefined,
    responseAddress: undefined,
    responsePort: 0,
    queryMs: 1_700_000_000_123.25,
    responseMs: undefined,
    start: 0,
    end: bytes.length,
    ...of,
    bytes,
  };
}

function written(message: TappedMessage): Buffer {
  const block = Buffer.alloc(writer.sizeMax(message) + 10);
  const end = writer.write(block, 5, message);
  assert.ok(end - 5 <= writer.sizeMax(message));
  return block.subarray(5, end);
}

test("the decoder of others reads every kind of message, with any addresses and lengths", async () => {
  const addresses = [undefined, Uint8Array.of(172, 18, 0, 2), Uint8Array.from({ length: 16 }, (_, index) => index + 1)];
  const lengths = [QUERY.length, 127, 128, 300, 16_383, 16_384, 65_535];
  const all = [];
  for (const type of Object.values(TAPPED)) {
    const isReply = type % 2 === 0;
    for (const queryAddress of addresses) {
      for (const responseAddress of addresses) {
        for (const length of lengths) {
          const bytes = Buffer.concat([QUERY, Buffer.alloc(length - QUERY.length)]);
          const responseMs = isReply ? 1_700_000_001_500.5 : undefined;
          all.push(
            aMessage({
              type,
              queryAddress,
              responseAddress,
              responsePort: 65_535,
              bytes,
              responseMs,
              isStream: length > 300,
            }),
          );
        }
      }
    }
  }
  const file = join(folder, "all");
  const frames = all.flatMap((message) => {
    const bytes = written(message);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return [length, bytes];
  });
  const content = Buffer.from("protobuf:dnstap.Dnstap");
  writeFileSync(file, Buffer.concat([controlFrame(2, content), ...frames, controlFrame(3)]));
  const lines = (await check("dnstap-ldns", ["-q", "-r", file])).trim().split("\n");
  assert.equal(lines.length, all.length);
  const kinds = { 5: "CQ", 6: "CR", 7: "FQ", 8: "FR" } as const;
  for (const [index, line] of lines.entries()) {
    const { type, end, isStream, responseMs } = all[index] as TappedMessage;
    const time = responseMs === undefined ? "2023-11-14 22:13:20.123250" : "2023-11-14 22:13:21.500500";
    assert.ok(line.startsWith(`${time} ${kinds[type as 5]} `), line);
    assert.ok(line.includes(` ${isStream ? "TCP" : "UDP"} ${end}b "host.test." IN A`), line);
  }
});

test("it says which machine and which container", () => {
  const bytes = written(aMessage());
  assert.ok(bytes.subarray(0, 9).equals(Buffer.from("\x0a\x07machine", "latin1")));
  assert.ok(bytes.includes("\x12\x05dns11"));
  assert.ok(bytes.includes("\x1a\x03web"));
});

test("a message without names keeps id, flags, code, type and class", () => {
  const reply = Buffer.concat([aReplyTo(QUERY, 3), Buffer.from("secret")]);
  const shown = Buffer.from(withoutNames(reply, 0, reply.length));
  assert.deepEqual(shown.subarray(0, 4), reply.subarray(0, 4));
  assert.equal(shown.toString("hex", 4), "00010000000000000000010001");
  const shifted = Buffer.concat([Buffer.alloc(7, 0xff), reply]);
  assert.deepEqual(Buffer.from(withoutNames(shifted, 7, shifted.length)), shown);
  const bare = Buffer.from(withoutNames(reply, 0, 12));
  assert.equal(bare.toString("hex", 4), "0000000000000000");
});

test("of no message, however damaged, more is shown", () => {
  for (let round = 0; round < 20_000; round++) {
    const bytes = randomBytes(12 + (round % 40));
    const shown = withoutNames(bytes, 0, bytes.length);
    assert.ok(shown.length === 12 || shown.length === 17);
    assert.ok(shown.subarray(6, 13).every((byte) => byte === 0));
  }
});

test("the setting is a path that a socket may have, and names that are not kept are a conflict", () => {
  const { kind } = DNSTAP.settings.dnstap;
  assert.equal(kind.read("/run/tap.sock"), "/run/tap.sock");
  for (const path of ["tap.sock", "", 5, "/a\0b", `/${"x".repeat(107)}`])
    assert.throws(() => kind.read(path), /invalid (?:path|value) .*: use /);
  const merge = (names: "off" | "hidden", dnstap?: string): unknown =>
    mergeSettings([
      {
        source: "flag",
        values: { "queries.names": names, ...(dnstap !== undefined && { dnstap }) },
        where: (key) => `--${key}`,
      },
    ]);
  assert.throws(
    () => merge("off", "/run/tap.sock"),
    (error) =>
      error instanceof BadSettings && /^--dnstap: has no effect with queries.names: off/.test(error.lines.join()),
  );
  assert.equal(socketPath(merge("hidden", "/run/tap.sock") as never), "/run/tap.sock");
  assert.equal(socketPath(merge("off") as never), undefined);
});
