/**
 * What a server is told of a container, and nobody else; what the container itself says of that. Messages are written by hand, or by
 * whoever would like to be somebody else.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";

import { decode } from "dns-packet";

import { extrasOf, messageFor } from "../../../src/query/forward/edns-fallback.ts";
import type { UpstreamQueryPlan } from "../../../src/query/forward/upstream-query-plan.ts";
import { subnetOption } from "../../../src/features/client-subnet/client-subnet.ts";
import { queryWithClientOption, replyWithoutClientOption } from "../../../src/query/wire/hop-options.ts";
import { TYPE, aQuery, aReplyTo } from "../../support/scripted/builders.ts";

const OPTION = subnetOption("172.18.0.2");
const QUESTION = aQuery({ name: "host.test", type: TYPE.A });
const END = QUESTION.length;

/** With these additional records. */
function withRecords(...records: readonly string[]): Buffer {
  const message = Buffer.concat([QUESTION, ...records.map((each) => Buffer.from(each, "hex"))]);
  message.writeUInt16BE(records.length, 10);
  return message;
}

function opt(flags: string, options = ""): string {
  return `00002904d00000${flags}${(options.length / 2).toString(16).padStart(4, "0")}${options}`;
}

const LIE = "00080008000120000a000001";
const TSIG = `0000fa00ff00000000001a${"08686d61632d6d6435".padEnd(52, "0")}`;

test("a query has the question, one OPT and the container's own address, whatever else the container has sent", () => {
  for (const message of [
    QUESTION,
    withRecords(opt("0000")),
    withRecords(opt("0000", LIE)),
    withRecords(opt("0000", LIE + LIE + "000a00080102030405060708")),
    withRecords(opt("0000", LIE), opt("0000", LIE)),
    withRecords(TSIG),
    withRecords(opt("0000", LIE), TSIG),
  ]) {
    const told = queryWithClientOption(message, END, OPTION);
    assert.deepEqual(told.subarray(12, END), QUESTION.subarray(12, END));
    assert.equal(told.toString("hex", END), opt("0000", Buffer.from(OPTION).toString("hex")));
    assert.deepEqual(
      [6, 8, 10].map((at) => told.readUInt16BE(at)),
      [0, 0, 1],
    );
    assert.ok(!told.toString("hex").includes(LIE));
  }
  assert.equal(
    queryWithClientOption(withRecords(opt("8000")), END, OPTION).toString("hex", END, END + 9),
    opt("8000").slice(0, 18),
  );
  assert.equal(queryWithClientOption(QUESTION, END, new Uint8Array(0)).toString("hex", END), opt("0000"));
});

test("only the server that is meant is told, and its query never lacks that", () => {
  const [told, other] = [aNameserver(true), aNameserver(false)];
  const ours = withRecords(opt("0000"));
  for (const isOptOurs of [true, false]) {
    const message = isOptOurs ? ours : withRecords(opt("0000", LIE));
    const plan = {
      message,
      questionEnd: END,
      isOptOurs,
      nameservers: [other, told],
      clientOptions: [undefined, OPTION],
    };
    const sentTo = (nameserver: object, omitted: number): Buffer =>
      messageFor(plan as unknown as UpstreamQueryPlan, { nameserver, omitted } as never, 0);
    for (const omitted of [0, 1, 3]) {
      const sent = sentTo(told, omitted);
      assert.equal(decode(sent).additionals?.length, 1);
      assert.ok(sent.toString("hex").endsWith(Buffer.from(OPTION).toString("hex")));
      assert.ok(!sentTo(other, omitted).toString("hex").includes("ac120002"));
      // So neither silence nor an error has it asked without.
      assert.equal(extrasOf(plan as unknown as UpstreamQueryPlan, sent, told as never) & 1, 0);
    }
    assert.deepEqual(sentTo(other, 0), message);
  }
});

test("a reply shows nothing of it", () => {
  const reply = Buffer.concat([aReplyTo(QUESTION), Buffer.from(opt("0000", LIE), "hex")]);
  reply.writeUInt16BE(1, 10);
  const plain = aReplyTo(QUESTION);
  assert.deepEqual(replyWithoutClientOption(reply, END, false), plain);
  assert.equal(replyWithoutClientOption(reply, END, true).toString("hex", END), opt("0000"));
  const other = Buffer.concat([aReplyTo(QUESTION), Buffer.from(opt("0000", "000f00020010" + LIE), "hex")]);
  other.writeUInt16BE(1, 10);
  assert.equal(replyWithoutClientOption(other, END, true).toString("hex", END), opt("0000", "000f00020010"));
  assert.deepEqual(replyWithoutClientOption(plain, END, false), plain);
});

test("damaged messages of any kind are neither an error nor longer than they were", () => {
  const whole = Buffer.concat([aReplyTo(QUESTION), Buffer.from(opt("0000", LIE), "hex")]);
  whole.writeUInt16BE(1, 10);
  for (let round = 0; round < 20_000; round++) {
    const damaged = Buffer.from(whole.subarray(0, END + (round % (whole.length - END + 1))));
    const noise = randomBytes(4);
    const at = 4 + ((noise[0] as number) % (damaged.length - 4));
    damaged[at] = noise[1] as number;
    for (const hasOpt of [true, false])
      assert.ok(replyWithoutClientOption(damaged, END, hasOpt).length <= damaged.length);
    const told = queryWithClientOption(damaged, END, OPTION);
    assert.equal(told.length, END + 11 + OPTION.length);
  }
});

function aNameserver(isRejecting: boolean): object {
  const silentTo = { edns: { isKnown: () => isRejecting }, ad: { isKnown: () => false } };
  return { isRejecting: () => isRejecting, silentTo };
}
