// What standards demand of a forwarder that no scenario elsewhere has. docs/internals/rfc.md names each.

import assert from "node:assert/strict";

import { TYPE, anOpt, u16 } from "../support/scripted/builders.ts";
import type { Scenario } from "./scenario.ts";
import { rcodeOf } from "./scene.ts";

const SERVFAIL = 2;
const TC = 0x0200;

export const STANDARDS: readonly Scenario[] = [
  {
    from: "RFC 6891 6.1.1",
    title: "a query with two OPT records is FORMERR",
    run: async (scene) => {
      const reply = await scene.ask("www A", { additionals: [anOpt(), anOpt()] }).reply();
      assert.equal(rcodeOf(reply), "FORMERR");
      await scene.nothingReceived();
    },
  },
  {
    from: "RFC 6891 6.2.3",
    title: "a size below 512 means 512",
    run: async (scene) => {
      const answers = Array.from({ length: 12 }, (_, at) => `www 60 A 192.0.2.${at + 1}`);
      const asked = scene.ask("www A", { opt: { udpSize: 64 } });
      const message = await scene.whileSaying({ answers, opt: {} }, asked.message());
      assert.equal(message.readUInt16BE(2) & TC, 0);
      assert.ok(message.length > 64);
    },
  },
  {
    from: "RFC 6891 6.2.1",
    title: "the OPT of an answer is not cached: a client without EDNS has the answer, and no OPT",
    run: async (scene) => {
      await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"], opt: {} }, { opt: {} });
      const plain = await scene.ask("www A").reply();
      assert.deepEqual([plain.answers.length, plain.additionals.length], [1, 0]);
      await scene.nothingReceived();
    },
  },
  {
    from: "RFC 7766 5, 6.2.1.1",
    title: "several queries in one segment of a connection are each answered",
    run: async (scene) => {
      const connection = scene.ask("one A", { isStream: true, id: 1 });
      connection.send(scene.messageOf("two A", { id: 2 }));
      for (const _ of [1, 2]) {
        const received = await scene.received();
        const [label = ""] = received.text.split(" ");
        received.reply({ answers: [`${label} 60 A 192.0.2.1`] });
      }
      const ids = [(await connection.reply()).id, (await connection.reply()).id];
      assert.deepEqual(new Set(ids), new Set([1, 2]));
    },
  },
  {
    from: "RFC 7766 6.2.4",
    title: "a query on a kept connection that the server closes is sent once more on another one",
    run: async (scene) => {
      const first = scene.ask("one A");
      (await scene.received()).reply({ flags: TC });
      (await scene.received()).reply({ answers: ["one 60 A 192.0.2.1"] });
      await first.reply();
      const second = scene.ask("two A");
      (await scene.received()).reply({ flags: TC });
      (await scene.received()).close();
      const again = await scene.received(1, { isAgain: true });
      assert.equal(again.isStream, true);
      again.reply({ answers: ["two 60 A 192.0.2.2"] });
      assert.deepEqual(scene.texts((await second.reply()).answers), ["two A 192.0.2.2"]);
    },
  },
  {
    from: "RFC 9520 3.1",
    title: "a server that fails is asked a few times for one question, and not more",
    run: async (scene) => {
      const reply = await scene.whileSaying({ rcode: SERVFAIL }, scene.ask("www A").reply());
      assert.equal(rcodeOf(reply), "SERVFAIL");
      assert.ok((await scene.countReceived()) <= 4, "the first question and at most three more");
    },
  },
  {
    from: "RFC 9520 3.2",
    title: "a failure is remembered for its type alone, and not beyond five minutes",
    run: async (scene) => {
      await scene.whileSaying({ rcode: SERVFAIL }, scene.ask("www A").reply());
      const other = await scene.exchange("www AAAA", { answers: ["www 60 AAAA 20010db8"] });
      assert.equal(rcodeOf(other), "NOERROR");
      await scene.pass(300);
      const reply = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "RFC 2308 7.2",
    title: "a server that was silent is asked again within five minutes",
    run: async (scene) => {
      for (const label of ["one", "two", "three"]) await scene.ask(`${label} A`).reply();
      await scene.pass(300);
      const reply = await scene.whileSaying({ answers: ["four 60 A 192.0.2.1"] }, scene.ask("four A").reply());
      assert.deepEqual(scene.texts(reply.answers), ["four A 192.0.2.1"]);
    },
  },
  {
    from: "RFC 6761 6.3",
    title: "localhost and the names below it are the loopback, whatever a server would say",
    run: async (scene) => {
      for (const name of ["localhost", "app.localhost"]) {
        const reply = await scene.ask({ name, type: TYPE.A }).reply();
        assert.deepEqual(scene.texts(reply.answers), [`${name} A 127.0.0.1`]);
      }
      await scene.nothingReceived();
    },
  },
  {
    from: "RFC 6761 6.4",
    title: "invalid does not exist",
    run: async (scene) => assert.equal(rcodeOf(await scene.ask({ name: "www.invalid" }).reply()), "NXDOMAIN"),
  },
  {
    from: "RFC 6761 6.2, 6.5",
    title: "test and example are names like others",
    differs: "for test a resolver should know no servers; people give it some, as these scenarios do",
    run: async (scene) => {
      const reply = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "RFC 6761 6.1, 6303",
    title: "reverse names of private addresses are kept where forward.bogus-priv is set",
    differs: "by default they are forwarded: a container's server is often the one that knows them",
    settings: ["forward: {bogus-priv: true}"],
    run: async (scene) => {
      const reply = await scene.ask({ name: "9.8.168.192.in-addr.arpa", type: TYPE.PTR }).reply();
      assert.equal(rcodeOf(reply), "NXDOMAIN");
    },
  },
  {
    from: "RFC 1035 4.1.1",
    title: "a query that says that it is a reply gets none",
    run: async (scene) => {
      const silent = scene.ask("www A", { flags: 0x8180 });
      await scene.exchange("other A", { answers: ["other 60 A 192.0.2.1"] });
      assert.equal(silent.hasMore, false);
    },
  },
  {
    from: "RFC 9619",
    title: "a query with two questions is FORMERR",
    run: async (scene) => {
      const message = scene.messageOf("www A");
      const two = Buffer.concat([message, message.subarray(12)]);
      two.set(u16(2), 4);
      assert.equal((await scene.askRaw(two).message()).readUInt16BE(2) & 15, 1);
    },
  },
];
