// The tests of RFC 8906, section 8, asked of dns11 as of a server: of a name that it answers itself, and where it matters of one that
// it forwards. Whether a server answers at all is what they are about.

import assert from "node:assert/strict";

import type { Reply } from "../unit/support/reply.ts";
import type { OptParts, QueryParts } from "../support/scripted/builders.ts";
import { TYPE } from "../support/scripted/builders.ts";
import type { Scenario } from "./scenario.ts";
import { type Scene, extendedRcodeOf, optionsOf, rcodeOf } from "./scene.ts";

const RD = 0x0100;
const Z = 0x0040;
const AD = 0x0020;
const CD = 0x0010;
const OPCODE_15 = 0x7800;
const BADVERS = 16;
/** The container's own name, which dns11 answers. */
const OWN = "client";

async function own(scene: Scene, parts: QueryParts = {}, isStream = false): Promise<Reply> {
  return await scene.ask({ name: OWN, id: 0x1906, ...parts }, { isStream }).reply();
}

async function forwarded(scene: Scene, parts: QueryParts): Promise<Reply> {
  return await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] }, parts);
}

function assertAnswered(reply: Reply): void {
  assert.deepEqual([rcodeOf(reply), reply.answers.length], ["NOERROR", 1]);
}

function optOf(reply: Reply): Reply["additionals"][number] {
  return reply.additionals.find(({ type }) => type === TYPE.OPT) ?? assert.fail("there is no OPT");
}

/** Asked with an unknown version of EDNS. */
async function assertBadVersion(scene: Scene, opt: OptParts, extraFlags = 0): Promise<void> {
  const reply = await own(scene, { opt: { version: 1, ...opt }, ...(extraFlags !== 0 && { flags: RD | extraFlags }) });
  assert.equal(extendedRcodeOf(reply), BADVERS);
  assert.equal((optOf(reply).ttl >>> 16) & 255, 0, "it names the version that it has");
  assert.deepEqual([reply.answers.length, reply.question?.name], [0, OWN]);
}

/** A flag of EDNS that has no meaning yet. */
function withFlag(flag: number): Buffer {
  const opt = Buffer.from("0000290200000000000000", "hex");
  opt.writeUInt32BE(flag, 5);
  return opt;
}

export const RFC8906: readonly Scenario[] = [
  {
    from: "RFC 8906 8.1.1",
    title: "SOA of a name that exists is no error",
    run: async (scene) => {
      const reply = await own(scene, { type: TYPE.SOA });
      assert.deepEqual([rcodeOf(reply), reply.answers.length], ["NOERROR", 0]);
    },
  },
  {
    from: "RFC 8906 8.1.2",
    title: "an unknown type of a name that exists is empty",
    run: async (scene) => {
      const reply = await own(scene, { type: 1000 });
      assert.deepEqual([rcodeOf(reply), reply.answers.length], ["NOERROR", 0]);
      const outside = await scene.exchange("www TYPE1000", { answers: ["www 60 TYPE1000 c0ffee"] });
      assert.equal(outside.answers.length, 1);
    },
  },
  {
    from: "RFC 8906 8.1.3.1",
    title: "CD=1 is answered",
    run: async (scene) => {
      assertAnswered(await own(scene, { flags: RD | CD }));
      assertAnswered(await forwarded(scene, { flags: RD | CD }));
    },
  },
  {
    from: "RFC 8906 8.1.3.2",
    title: "AD=1 is answered",
    run: async (scene) => {
      assertAnswered(await own(scene, { flags: RD | AD }));
      assertAnswered(await forwarded(scene, { flags: RD | AD }));
    },
  },
  {
    from: "RFC 8906 8.1.3.3",
    title: "the reserved bit is answered, and is zero in the answer",
    run: async (scene) => {
      for (const reply of [await own(scene, { flags: RD | Z }), await forwarded(scene, { flags: RD | Z })]) {
        assertAnswered(reply);
        assert.equal(reply.flags.split(" ").includes("z"), false);
      }
    },
  },
  {
    from: "RFC 8906 8.1.3.4",
    title: "RD=1 and RD=0 are answered, with the same bit",
    run: async (scene) => {
      for (const flags of [RD, 0]) {
        const reply = await own(scene, { flags });
        assertAnswered(reply);
        assert.equal(reply.flags.split(" ").includes("rd"), flags === RD);
      }
    },
  },
  {
    from: "RFC 8906 8.1.4",
    title: "an unknown opcode is NOTIMP",
    run: async (scene) => assert.equal(rcodeOf(await own(scene, { flags: OPCODE_15 })), "NOTIMP"),
  },
  {
    from: "RFC 8906 8.1.4",
    title: "an unknown opcode without a question is NOTIMP, too",
    run: async (scene) => {
      const header = Buffer.from("190678000000000000000000", "hex");
      assert.equal((await scene.askRaw(header).message()).readUInt16BE(2) & 15, 4);
    },
  },
  {
    from: "RFC 8906 8.1.5",
    title: "TCP is answered",
    run: async (scene) => assertAnswered(await own(scene, {}, true)),
  },
  {
    from: "RFC 8906 8.2.1",
    title: "minimal EDNS is answered with an OPT of version 0",
    run: async (scene) => {
      const reply = await own(scene, { opt: {} });
      assertAnswered(reply);
      assert.equal((optOf(reply).ttl >>> 16) & 255, 0);
    },
  },
  {
    from: "RFC 8906 8.2.2",
    title: "an unknown version of EDNS is BADVERS",
    run: async (scene) => await assertBadVersion(scene, {}),
  },
  {
    from: "RFC 8906 8.2.3",
    title: "an unknown option is ignored",
    run: async (scene) => {
      const opt = { options: [[100, Buffer.alloc(4)]] } as const;
      const reply = await own(scene, { opt });
      assertAnswered(reply);
      assert.equal(optionsOf(reply).has(100), false);
      assertAnswered(await forwarded(scene, { opt }));
    },
  },
  {
    from: "RFC 8906 8.2.4",
    title: "an unknown flag is ignored, and not set in the answer",
    run: async (scene) => {
      const reply = await own(scene, { additionals: [withFlag(0x40)] });
      assertAnswered(reply);
      assert.equal(optOf(reply).ttl & 0x40, 0);
    },
  },
  {
    from: "RFC 8906 8.2.5",
    title: "an unknown version with an unknown flag is BADVERS",
    run: async (scene) => {
      const reply = await own(scene, { additionals: [withFlag(0x10040)] });
      assert.deepEqual([extendedRcodeOf(reply), optOf(reply).ttl & 0x40], [BADVERS, 0]);
    },
  },
  {
    from: "RFC 8906 8.2.6",
    title: "an unknown version with an unknown option is BADVERS",
    run: async (scene) => await assertBadVersion(scene, { options: [[100, Buffer.alloc(4)]] }),
  },
  {
    from: "RFC 8906 8.2.7",
    title: "an answer that is truncated has its OPT",
    run: async (scene) => {
      const answers = Array.from({ length: 60 }, (_, at) => `www 60 A 192.0.2.${at + 1}`);
      const asked = scene.ask("www A", { opt: { udpSize: 512 } });
      const reply = await scene.whileSaying({ answers, opt: {} }, asked.message());
      assert.ok(reply.length <= 512 && (reply.readUInt16BE(2) & 0x0200) !== 0);
      assert.equal(reply.readUInt16BE(10), 1, "one additional record");
    },
  },
  {
    from: "RFC 8906 8.2.8",
    title: "DO=1 is answered, with the same bit",
    run: async (scene) => {
      const reply = await own(scene, { opt: { isDnssecOk: true } });
      assertAnswered(reply);
      assert.equal(optOf(reply).ttl & 0x8000, 0x8000);
    },
  },
  {
    from: "RFC 8906 8.2.9",
    title: "an unknown version with DO=1 is BADVERS",
    run: async (scene) => await assertBadVersion(scene, { isDnssecOk: true }),
  },
  {
    from: "RFC 8906 8.2.10",
    title: "several options that are defined are answered",
    run: async (scene) => {
      const options = [
        [3, Buffer.alloc(0)],
        [10, Buffer.alloc(8, 7)],
        [8, Buffer.from("00010000", "hex")],
        [9, Buffer.alloc(0)],
      ] as const;
      assertAnswered(await own(scene, { opt: { options } }));
      assertAnswered(await forwarded(scene, { opt: { options } }));
    },
  },
];
