// Servers that answer otherwise than the standard says, as dns-violations lists them (DVE): what a client gets all the same.

import assert from "node:assert/strict";

import type { Scenario, Unsuitable } from "./scenario.ts";
import { rcodeOf } from "./scene.ts";

const AA = 0x0400;
const AD = 0x0020;
const NXDOMAIN = 3;
const NOTIMP = 4;
const REFUSED = 5;
const DENIAL = { rcode: NXDOMAIN, authorities: ["@ 60 SOA 60"] };

export const BROKEN_SERVERS: readonly Scenario[] = [
  {
    from: "DVE-2017-0001",
    title: "octets behind the last record: the answer counts, and they go no further",
    run: async (scene) => {
      const reply = await scene.exchange("www A", { answers: ["www 30 A 192.0.2.1"], tail: Buffer.alloc(19) });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "DVE-2017-0003, DVE-2017-0006",
    title: "a server that fails at capital letters is asked in the client's own",
    run: async (scene) => {
      const asked = scene.ask("www A");
      const received = await scene.received();
      assert.equal(received.query.question?.name, `www.${scene.zone}`);
      received.reply({ answers: ["www 60 A 192.0.2.1"] });
      await asked.reply();
    },
  },
  {
    from: "DVE-2017-0007",
    title: "NOTIMP for a type is the answer if no server has a better one",
    servers: 2,
    run: async (scene) => {
      const reply = await scene.whileSaying({ rcode: NOTIMP }, scene.ask("www NS").reply());
      assert.equal(rcodeOf(reply), "NOTIMP");
      const other = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(other.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "DVE-2017-0011",
    title: "a record of another type than was asked for reaches the client",
    differs: "libraries pass over it, and Docker's resolver passes it on; it is of the name that was asked",
    run: async (scene) => {
      const reply = await scene.exchange("www AAAA", { answers: ["www 3600 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "DVE-2017-0013",
    title: "AD of a server reaches a client only that has asked for it",
    run: async (scene) => {
      const plain = await scene.exchange("one A", { flags: AD, answers: ["one 60 A 192.0.2.1"] });
      assert.equal(plain.flags.includes("ad"), false);
      const asking = await scene.exchange(
        "two A",
        { flags: AD, answers: ["two 60 A 192.0.2.1"] },
        { flags: 0x0100 | AD },
      );
      assert.equal(asking.flags.includes("ad"), true);
    },
  },
  {
    from: "DVE-2017-0014",
    title: "a server that is silent about one type goes on answering the others",
    run: async (scene) => {
      const silent = scene.ask("_443._tcp.www TYPE52");
      await scene.received();
      const quick = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(quick.answers), ["www A 192.0.2.1"]);
      assert.equal(rcodeOf(await silent.reply()), "SERVFAIL");
      const after = await scene.whileSaying({ answers: ["later 60 A 192.0.2.2"] }, scene.ask("later A").reply());
      assert.deepEqual(scene.texts(after.answers), ["later A 192.0.2.2"]);
    },
  },
  {
    from: "DVE-2017-0016",
    title: "a record that comes twice is an answer",
    run: async (scene) => {
      const reply = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1", "www 60 A 192.0.2.1"] });
      assert.deepEqual([...new Set(scene.texts(reply.answers))], ["www A 192.0.2.1"]);
    },
  },
  {
    from: "DVE-2017-0017, DVE-2018-0004",
    title: "NXDOMAIN for a type that is not there leaves the other types alone",
    run: async (scene) => {
      for (const type of ["AAAA", "NS", "MX"])
        assert.equal(rcodeOf(await scene.exchange(`www ${type}`, DENIAL)), "NXDOMAIN");
      const reply = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "DVE-2017-0019",
    title: "a wrong alias for one type does not stand for another",
    run: async (scene) => {
      const wrong = { rcode: NXDOMAIN, answers: ["www 600 CNAME gone"], authorities: ["@ 60 SOA 60"] };
      assert.equal(rcodeOf(await scene.exchange("www AAAA", wrong)), "NXDOMAIN");
      const reply = await scene.exchange("www A", { answers: ["www 600 CNAME right", "right 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(reply.answers), ["www CNAME", "right A 192.0.2.1"]);
    },
  },
  {
    from: "DVE-2019-0001, RFC 8020",
    title: "a name that is denied does not deny the names below it",
    differs: "RFC 8020 lets a resolver do so; too many servers deny a name that has names below it",
    run: async (scene) => {
      assert.equal(rcodeOf(await scene.exchange("middle A", DENIAL)), "NXDOMAIN");
      const reply = await scene.exchange("below.middle A", { answers: ["below.middle 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(reply.answers), ["below.middle A 192.0.2.1"]);
    },
  },
  {
    from: "DVE-2020-0002, DVE-2020-0003",
    title: "a server that refuses one type is not passed over for the others",
    servers: 2,
    run: async (scene) => {
      await scene.whileSaying({ rcode: REFUSED }, scene.ask("www SOA").reply());
      const asked = scene.ask("www A");
      (await scene.received(1)).reply({ answers: ["www 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts((await asked.reply()).answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "unbound iter_scrub_ns_side (lame servers)",
    title: "a referral in place of an answer is an empty answer, and nobody follows it",
    run: async (scene) => {
      const said = {
        flags: AA,
        authorities: ["example. 60 NS ns.example."],
        additionals: ["ns.example. 60 A 203.0.113.66"],
      };
      const reply = await scene.whileSaying(said, scene.ask("www A").reply());
      assert.equal(reply.answers.length, 0);
    },
  },
];

export const NOT_BROKEN_SERVERS: readonly Unsuitable[] = [
  { from: "DVE-2017-0002", why: "names are asked as a whole, never label by label" },
  { from: "DVE-2017-0009, -0010, -0015, DVE-2018-0003, DVE-2021-0001", why: "proofs of DNSSEC are not verified here" },
];
