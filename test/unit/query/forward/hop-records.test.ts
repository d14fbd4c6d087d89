// Proves that what concerns only dns11 and the server it has asked does not reach clients: signatures, response codes that only
// an OPT can carry, and texts that nobody can print.

import assert from "node:assert/strict";
import { test } from "node:test";

import { TYPE, aName, aPointer, aQuery, aRecord, aReplyTo, anOpt, u16 } from "../../../support/scripted/builders.ts";
import { QueryPath, clientOf } from "../../support/query-path.ts";
import type { Reply } from "../../support/reply.ts";
import { UdpUpstream } from "../../support/upstreams.ts";

const [SIG, ANY, TSIG] = [24, 255, 250];
const EXTENDED_ERROR = 15;
const BLOCKED = 15;
// The second query may not be shared with other clients, so its reply is passed on as it is.
const SHAREABLE = [aQuery({ name: "example.org", opt: {} }), aQuery({ name: "example.org", flags: 0, opt: {} })];
const ADDRESS = aRecord({ owner: aPointer(12), type: TYPE.A, ttl: 60, data: Buffer.of(192, 0, 2, 1) });
const TSIG_DATA = Buffer.concat([aName("hmac-sha256"), Buffer.alloc(16), Buffer.alloc(0)]);
const SIGNATURES = [
  aRecord({ owner: "key", type: TSIG, class: 255, data: TSIG_DATA }),
  aRecord({ type: SIG, class: 255, data: Buffer.concat([Buffer.alloc(18), aName("key"), Buffer.alloc(9)]) }),
];

test("signatures of a server are removed, for a question of any type", async () => {
  for (const signature of SIGNATURES) {
    for (const query of [...SHAREABLE, aQuery({ name: "example.org", type: ANY })]) {
      for (const additionals of [[signature], [anOpt(), signature]]) {
        const reply = await replyWith(query, { answers: [ADDRESS], additionals });
        assert.deepEqual([reply.rcode, reply.answers.length], [0, 1]);
        assert.ok(reply.additionals.every(({ type }) => type === TYPE.OPT));
      }
    }
  }
});

test("a reply with a record behind its TSIG is no reply", async () => {
  const [tsig = Buffer.alloc(0)] = SIGNATURES;
  for (const additionals of [
    [tsig, anOpt()],
    [tsig, tsig],
  ]) {
    for (const query of SHAREABLE) assert.equal((await replyWith(query, { answers: [ADDRESS], additionals })).rcode, 2);
  }
});

test("a response code that only an OPT can carry is a failure of the server", async () => {
  for (const code of [288, 289, 3_344, 17, 23]) {
    for (const query of SHAREABLE.slice(0, code === 23 ? 1 : 2)) {
      const opt = anOpt();
      opt[5] = code >> 4;
      const reply = await replyWith(query, { flags: 0x8180 | (code & 15), answers: [ADDRESS], additionals: [opt] });
      assert.deepEqual([reply.rcode, reply.answers.length], [2, 0], `${code}`);
      assert.equal((reply.additionals[0]?.ttl ?? 0) >>> 24, 0, "nothing of it is left in the OPT");
    }
  }
});

test("a server without another code is followed by the next one", async () => {
  const opt = anOpt();
  opt[5] = 18;
  await using odd = new UdpUpstream((query, reply) => reply(answerTo(query, { additionals: [opt] })));
  await using good = new UdpUpstream((query, reply) => reply(answerTo(query, { answers: [ADDRESS] })));
  for (const query of SHAREABLE) {
    const reply = await new QueryPath().query(clientOf(odd.server, good.server), query);
    assert.deepEqual([reply.rcode, reply.answers.length], [0, 1]);
  }
});

test("what cannot be printed in an extended error is replaced; everything else stays", async () => {
  const texts: readonly (readonly [Buffer, string])[] = [
    [Buffer.from("blocked by policy"), "blocked by policy"],
    [Buffer.from("gesperrt für alle"), "gesperrt für alle"],
    [Buffer.from("\u001b[31mred\u0000\n"), "?[31mred??"],
    [Buffer.from("a\u009b1mb\u202ec"), "a??1mb???c"],
    [Buffer.of(0x61, 0xff, 0xc3, 0x62), "a??b"],
    [Buffer.alloc(0), ""],
  ];
  for (const [text, shown] of texts) {
    for (const [code, query] of SHAREABLE.flatMap((one) => [[0, one] as const, [3, one] as const, [2, one] as const])) {
      const option = [EXTENDED_ERROR, Buffer.concat([u16(BLOCKED), text])] as const;
      const reply = await replyWith(query, { flags: 0x8180 | code, additionals: [anOpt({ options: [option] })] });
      const data = reply.additionals.find(({ type }) => type === TYPE.OPT)?.data ?? Buffer.alloc(0);
      assert.equal(data.readUInt16BE(4), BLOCKED);
      assert.equal(data.subarray(6).toString(), shown);
    }
  }
});

type Sections = {
  readonly flags?: number;
  readonly answers?: readonly Buffer[];
  readonly additionals?: readonly Buffer[];
};

function answerTo(query: Buffer, { flags = 0x8180, answers = [], additionals = [] }: Sections): Buffer {
  const reply = Buffer.concat([aReplyTo(query, 0, answers), ...additionals]);
  reply.set(u16(flags), 2);
  reply.set(u16(additionals.length), 10);
  return reply;
}

async function replyWith(query: Buffer, sections: Sections): Promise<Reply> {
  await using upstream = new UdpUpstream((asked, reply) => reply(answerTo(asked, sections)));
  return await new QueryPath().query(clientOf(upstream.server), query);
}
