// What a forwarder does with the replies of its servers: who is asked, whose reply counts, what is repeated.

import assert from "node:assert/strict";

import { TYPE, aName, aPointer, aRecord, u16 } from "../support/scripted/builders.ts";
import type { Scenario, Unsuitable } from "./scenario.ts";
import { rcodeOf } from "./scene.ts";

const TC = 0x0200;
const AA = 0x0400;
const FORMERR = 1;
const SERVFAIL = 2;
const NXDOMAIN = 3;
const REFUSED = 5;

export const FORWARDING: readonly Scenario[] = [
  {
    from: "unbound fwd, fwd_udp",
    title: "a server's answer reaches the client, with the client's ID and question",
    run: async (scene) => {
      const asked = scene.ask("www A", { id: 0xabcd });
      (await scene.received()).reply({ answers: ["www 60 A 192.0.2.1"] });
      const reply = await asked.reply();
      assert.deepEqual([reply.id, rcodeOf(reply), reply.question?.name], [0xabcd, "NOERROR", `www.${scene.zone}`]);
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "unbound fwd_tcp",
    title: "a client over TCP gets the answer over TCP",
    run: async (scene) => {
      const reply = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] }, { isStream: true });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "unbound fwd_cached",
    title: "the same question again is answered from the cache, and not as an authority would",
    run: async (scene) => {
      await scene.exchange("www A", { flags: AA, answers: ["www 60 A 192.0.2.1"] });
      const again = await scene.ask("www A").reply();
      assert.deepEqual([scene.texts(again.answers), again.flags], [["www A 192.0.2.1"], "qr rd ra"]);
      assert.equal((await scene.allReceived()).length, 1);
    },
  },
  {
    from: "unbound fwd_notcached",
    title: "another question is asked of the server",
    run: async (scene) => {
      await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] });
      await scene.exchange("other A", { answers: ["other 60 A 192.0.2.2"] });
      await scene.exchange("www AAAA", { answers: ["www 60 AAAA 20010db8"] });
      assert.equal((await scene.allReceived()).length, 3);
    },
  },
  {
    from: "unbound fwd_no_cache",
    title: "without a cache each question is asked of the server",
    settings: ["cache: {size: 0}"],
    run: async (scene) => {
      for (const address of ["192.0.2.1", "192.0.2.2"]) {
        const reply = await scene.exchange("www A", { answers: [`www 3600 A ${address}`] });
        assert.deepEqual(scene.texts(reply.answers), [`www A ${address}`]);
        await scene.pass(10);
      }
    },
  },
  {
    from: "unbound fwd_two, fwd_three",
    title: "replies in another order than the questions reach who asked",
    run: async (scene) => {
      const asked = ["one", "two", "three"].map((label) => scene.ask(`${label} A`));
      const received = [await scene.received(), await scene.received(), await scene.received()];
      for (const each of received.toReversed()) {
        const [label = ""] = each.text.split(" ");
        each.reply({ answers: [`${label} 60 A 192.0.2.${label.length}`] });
      }
      const replies = await Promise.all(asked.map(async (each) => scene.texts((await each.reply()).answers)));
      assert.deepEqual(replies, [["one A 192.0.2.3"], ["two A 192.0.2.3"], ["three A 192.0.2.5"]]);
    },
  },
  {
    from: "unbound fwd_three_service, fwd_waitudp, fwd_oneport",
    title: "questions wait for nobody else's server",
    run: async (scene) => {
      const slow = scene.ask("slow A");
      const waiting = await scene.received();
      const quick = await scene.exchange("quick A", { answers: ["quick 60 A 192.0.2.2"] });
      assert.deepEqual(scene.texts(quick.answers), ["quick A 192.0.2.2"]);
      waiting.reply({ answers: ["slow 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts((await slow.reply()).answers), ["slow A 192.0.2.1"]);
    },
  },
  {
    from: "unbound fwd_error",
    title: "SERVFAIL of the only server is SERVFAIL for the client",
    run: async (scene) => {
      const asked = scene.ask("www A");
      const reply = await scene.whileSaying({ rcode: SERVFAIL }, asked.reply());
      assert.equal(rcodeOf(reply), "SERVFAIL");
    },
  },
  {
    from: "unbound fwd_error_retries",
    title: "after SERVFAIL the next server is asked, and its answer counts",
    servers: 2,
    run: async (scene) => {
      const asked = scene.ask("www A");
      (await scene.received(1)).reply({ rcode: SERVFAIL });
      (await scene.received(2)).reply({ answers: ["www 60 A 192.0.2.2"] });
      assert.deepEqual(scene.texts((await asked.reply()).answers), ["www A 192.0.2.2"]);
    },
  },
  {
    from: "unbound fwd_error_retries",
    title: "after REFUSED the next server is asked, and its answer counts",
    servers: 2,
    run: async (scene) => {
      const asked = scene.ask("www A");
      (await scene.received(1)).reply({ rcode: REFUSED });
      (await scene.received(2)).reply({ answers: ["www 60 A 192.0.2.2"] });
      assert.deepEqual(scene.texts((await asked.reply()).answers), ["www A 192.0.2.2"]);
    },
  },
  {
    from: "unbound fwd_timeout",
    title: "a server that says nothing is SERVFAIL within the time that a client waits",
    run: async (scene) => {
      const begunMs = performance.now();
      const reply = await scene.ask("www A").reply();
      assert.equal(rcodeOf(reply), "SERVFAIL");
      assert.ok(performance.now() - begunMs > 1_000, "it was given time to answer");
    },
  },
  {
    from: "unbound fwd_udptmout",
    title: "where the first server says nothing, the second one's answer counts",
    servers: 2,
    run: async (scene) => {
      const asked = scene.ask("www A");
      await scene.received(1);
      (await scene.received(2)).reply({ answers: ["www 60 A 192.0.2.2"] });
      assert.deepEqual(scene.texts((await asked.reply()).answers), ["www A 192.0.2.2"]);
    },
  },
  {
    from: "unbound fwd_udptmout",
    title: "a question whose packet is lost is asked once more",
    run: async (scene) => {
      const asked = scene.ask("www A");
      await scene.received();
      (await scene.received(1, { isAgain: true })).reply({ answers: ["www 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts((await asked.reply()).answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "unbound fwd_droptoomany, fwd_jostle, fwd_jostle_out",
    title: "when too many are in flight, the last one is refused at once, and those before it are answered",
    differs: "unbound drops a question, or one that waits for long; a refusal is an answer, and nobody loses a place",
    settings: ["forward: {max-concurrent: 1}", "cache: {size: 0}"],
    run: async (scene) => {
      const first = scene.ask("first A");
      const waiting = await scene.received();
      const second = await scene.ask("second A").reply();
      assert.ok(["REFUSED", "SERVFAIL"].includes(rcodeOf(second)), rcodeOf(second));
      waiting.reply({ answers: ["first 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts((await first.reply()).answers), ["first A 192.0.2.1"]);
    },
  },
  {
    from: "unbound fwd_udp_with_tcp_upstream, fwd_tcp_tc",
    title: "a truncated reply is fetched over TCP",
    run: async (scene) => {
      const asked = scene.ask("www A");
      (await scene.received()).reply({ flags: TC });
      const second = await scene.received();
      assert.equal(second.isStream, true);
      second.reply({ answers: ["www 60 A 192.0.2.1", "www 60 A 192.0.2.2"] });
      const reply = await asked.reply();
      assert.deepEqual([reply.answers.length, reply.flags], [2, "qr rd ra"]);
    },
  },
  {
    from: "unbound fwd_tcp_tc",
    title: "what does not fit a client without EDNS is truncated for it, and whole over TCP",
    run: async (scene) => {
      const answers = Array.from({ length: 40 }, (_, at) => `www 60 A 192.0.2.${at + 1}`);
      const asked = scene.ask("www A");
      (await scene.received()).reply({ flags: TC });
      (await scene.received()).reply({ answers });
      const message = await asked.message();
      assert.ok(message.length <= 512);
      assert.equal((message.readUInt16BE(2) & TC) !== 0, true);
      const whole = await scene.ask("www A", { isStream: true }).reply();
      assert.equal(whole.answers.length, answers.length);
    },
  },
  {
    from: "unbound fwd_malformed, fwd_bogus",
    title: "a reply that is no message is no reply, and the client gets SERVFAIL",
    run: async (scene) => {
      const asked = scene.ask("www A");
      const rubbish = Buffer.from("03b8080045000042b40d0000e4c2d1e3d2f8d48cb5df1b9308004500", "hex");
      const reply = await scene.whileSaying({ raw: rubbish }, asked.reply());
      assert.equal(rcodeOf(reply), "SERVFAIL");
    },
  },
  {
    from: "unbound fwd_malformed",
    title: "a server that sends rubbish is passed over for the next one",
    servers: 2,
    run: async (scene) => {
      const asked = scene.ask("www A");
      (await scene.received(1)).reply({ raw: Buffer.alloc(7, 0xff) });
      (await scene.received(2)).reply({ answers: ["www 60 A 192.0.2.2"] });
      assert.deepEqual(scene.texts((await asked.reply()).answers), ["www A 192.0.2.2"]);
    },
  },
  {
    from: "unbound fwd_zero",
    title: "a query that ends within its question is forwarded without a type, and the next one is unharmed",
    differs: "unbound drops it; Docker's resolver reads it so",
    run: async (scene) => {
      const header = Buffer.concat([u16(0xb438), u16(0x0100), u16(1), Buffer.alloc(6)]);
      const broken = scene.askRaw(Buffer.concat([header, aName(`www.${scene.zone}`)]));
      (await scene.received()).reply({ rcode: FORMERR });
      const reply = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
      assert.notEqual((await broken.message()).readUInt16BE(2) & 15, 0);
      // It is a failing name like any other, whose cause is looked for.
      const { failures } = await scene.dns11.client.failures();
      assert.ok(failures.some(({ name, type }) => name === `www.${scene.zone}` && type === "TYPE0"));
      assert.doesNotMatch(scene.dns11.log, /internal error|"entryPoint"/);
    },
  },
  {
    from: "unbound fwd_compress_c00c",
    title: "the octets of a server's reply are passed on, compressed or not",
    differs: "unbound writes them again; it is the server that knows what fits",
    run: async (scene) => {
      const asked = scene.ask("www A", { isStream: true });
      const answers = [1, 2, 3].map((last) =>
        aRecord({ owner: aPointer(12), type: TYPE.A, ttl: 60, data: Buffer.of(192, 0, 2, last) }),
      );
      (await scene.received()).reply({ answers });
      const size = 12 + aName(`www.${scene.zone}`).length + 4 + answers.length * (12 + 4);
      assert.equal((await asked.message()).length, size);
    },
  },
  {
    from: "unbound fwd_any",
    title: "ANY gets what the server says of it",
    run: async (scene) => {
      const reply = await scene.exchange("www ANY", { answers: ["www 60 A 192.0.2.1", "www 60 TXT words"] });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1", "www TXT"]);
    },
  },
  {
    from: "unbound fwd_minimal",
    title: "authority and additional records of an answer reach the client",
    differs: "unbound leaves them out where it is told to; what a server says is passed on, as Docker does",
    run: async (scene) => {
      const said = {
        answers: ["@ 60 MX 10 mail"],
        authorities: ["@ 60 NS ns"],
        additionals: ["mail 60 A 192.0.2.25", "ns 60 A 192.0.2.53"],
      };
      const reply = await scene.exchange("@ MX", said);
      const sections = [reply.answers, reply.authorities, reply.additionals].map((each) => scene.texts(each));
      assert.deepEqual(sections, [["@ MX"], ["@ NS"], ["mail A 192.0.2.25", "ns A 192.0.2.53"]]);
    },
  },
  {
    from: "unbound fwd_scrub_rrsig",
    title: "signatures beside an answer reach the client, all of those that the server sends",
    differs: "unbound keeps eight; nothing here verifies them, and a reply has at most 64 KiB",
    run: async (scene) => {
      const signatures = Array.from(
        { length: 8 },
        (_, at) => `www 60 TYPE46 ${`000108020000003c${at}`.padEnd(64, "0")}`,
      );
      const reply = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1", ...signatures] });
      assert.equal(reply.answers.length, 1 + signatures.length);
    },
  },
  {
    from: "unbound fwd_cname_follow, deckard iter_pcname",
    title: "a chain of aliases reaches the client in its order",
    run: async (scene) => {
      const answers = ["www 60 CNAME one", "one 60 CNAME two", "two 60 A 192.0.2.1"];
      const reply = await scene.exchange("www A", { answers });
      assert.deepEqual(scene.texts(reply.answers), ["www CNAME", "one CNAME", "two A 192.0.2.1"]);
    },
  },
  {
    from: "deckard iter_pcnamech",
    title: "a chain out of order is an answer, too",
    run: async (scene) => {
      const answers = ["two 60 A 192.0.2.1", "one 60 CNAME two", "www 60 CNAME one"];
      const reply = await scene.exchange("www A", { answers });
      assert.deepEqual(scene.texts(reply.answers).toSorted(), ["one CNAME", "two A 192.0.2.1", "www CNAME"]);
    },
  },
  {
    from: "deckard iter_cname_nx",
    title: "a chain that ends at a name that does not exist is NXDOMAIN with the chain",
    run: async (scene) => {
      const said = { rcode: NXDOMAIN, answers: ["www 60 CNAME gone"], authorities: ["@ 60 SOA 60"] };
      const reply = await scene.exchange("www A", said);
      assert.deepEqual([rcodeOf(reply), scene.texts(reply.answers)], ["NXDOMAIN", ["www CNAME"]]);
    },
  },
  {
    from: "deckard iter_cname_cache",
    title: "an alias and its target are cached as one answer, for the shorter of their times",
    run: async (scene) => {
      const answers = ["www 3600 CNAME one", "one 10 A 192.0.2.1"];
      await scene.exchange("www A", { answers });
      await scene.pass(11);
      const reply = await scene.exchange("www A", { answers: ["www 3600 CNAME one", "one 10 A 192.0.2.2"] });
      assert.deepEqual(scene.texts(reply.answers), ["www CNAME", "one A 192.0.2.2"]);
    },
  },
  {
    from: "unbound iter_scrub_ns_fwd, iter_scrub_promiscuous",
    title: "answers of names that nobody has asked for are dropped",
    run: async (scene) => {
      const reply = await scene.exchange("www A", {
        answers: ["www 60 A 192.0.2.1", "bank.example. 60 A 203.0.113.66"],
      });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "unbound iter_scrub_cname_an",
    title: "an address behind an alias that leads elsewhere is dropped",
    run: async (scene) => {
      const reply = await scene.exchange("www A", {
        answers: ["www 60 CNAME one", "two 60 A 203.0.113.66", "one 60 A 192.0.2.1"],
      });
      assert.deepEqual(scene.texts(reply.answers), ["www CNAME", "one A 192.0.2.1"]);
    },
  },
  {
    from: "unbound iter_scrub_rr_length",
    title: "an address record with three octets is no reply",
    servers: 2,
    run: async (scene) => {
      const asked = scene.ask("www A");
      const broken = aRecord({ owner: aPointer(12), type: TYPE.A, ttl: 60, data: Buffer.of(192, 0, 2) });
      (await scene.received(1)).reply({ answers: [broken] });
      (await scene.received(2)).reply({ answers: ["www 60 A 192.0.2.2"] });
      assert.deepEqual(scene.texts((await asked.reply()).answers), ["www A 192.0.2.2"]);
    },
  },
  {
    from: "unbound fwd_capsid, RFC 5452 9.1",
    title: "a reply with another ID, another question or from another address does not count",
    run: async (scene) => {
      const asked = scene.ask("www A");
      const received = await scene.received();
      const forged = { answers: ["www 60 A 203.0.113.66"] };
      received.reply({ ...forged, idMask: 1 });
      received.reply({ ...forged, from: scene.addresses[2] ?? "" });
      received.reply({ ...forged, question: Buffer.concat([aName(`vvv.${scene.zone}`), u16(TYPE.A), u16(1)]) });
      received.reply({ answers: ["www 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts((await asked.reply()).answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "RFC 5452 4.3",
    title: "after several replies that do not fit, the question is asked over TCP, where nobody else can answer",
    run: async (scene) => {
      const asked = scene.ask("www A");
      const received = await scene.received();
      for (const idMask of [1, 2, 3]) received.reply({ idMask, answers: ["www 60 A 203.0.113.66"] });
      const again = await scene.received();
      assert.equal(again.isStream, true);
      again.reply({ answers: ["www 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts((await asked.reply()).answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "unbound fwd_capsid_fallback, fwd_capsid_strip",
    title: "a server that answers in lower case is understood, and the client has its own case",
    run: async (scene) => {
      const asked = scene.ask("WwW A");
      const received = await scene.received();
      const question = Buffer.concat([aName(`www.${scene.zone}`), u16(TYPE.A), u16(1)]);
      received.reply({ question, answers: ["www 60 A 192.0.2.1"] });
      const reply = await asked.reply();
      assert.deepEqual([reply.question?.name, reply.answers.length], [`WwW.${scene.zone}`, 1]);
    },
  },
  {
    from: "unbound rrset_rettl, rrset_updated",
    title: "after its time, the newer answer replaces the older one",
    run: async (scene) => {
      await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] });
      await scene.pass(61);
      const reply = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.2"] });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.2"]);
      assert.deepEqual(scene.texts((await scene.ask("www A").reply()).answers), ["www A 192.0.2.2"]);
    },
  },
  {
    from: "unbound tcp_req_order",
    title: "questions of one connection are answered as they are ready, each with its ID",
    run: async (scene) => {
      const connection = scene.ask("slow A", { isStream: true, id: 1 });
      const slow = await scene.received();
      const more = scene.ask("quick A", { isStream: true, id: 2 });
      (await scene.received()).reply({ answers: ["quick 60 A 192.0.2.2"] });
      assert.equal((await more.reply()).id, 2);
      slow.reply({ answers: ["slow 60 A 192.0.2.1"] });
      assert.equal((await connection.reply()).id, 1);
    },
  },
  {
    from: "deckard module_policy_forward",
    title: "a name below another zone goes to that zone's servers only",
    run: async (scene) => {
      const outside = await scene.ask({ name: `${scene.zone}x.test`, type: TYPE.A }).reply();
      assert.equal(rcodeOf(outside), "NXDOMAIN");
      await scene.nothingReceived();
    },
  },
];

export const NOT_FORWARDING: readonly Unsuitable[] = [
  { from: "unbound fwd_lrudrop", why: "its cache has one place; ours is a number of octets, and unit tests fill it" },
  { from: "unbound fwd_name_lookup", why: "servers are addresses here, or containers" },
  { from: "unbound fwd_ancil", why: "about the address from which unbound answers; ours is always 127.0.0.11" },
  { from: "unbound fwd_capsid_white", why: "no random letter case is sent, so no list of exceptions exists" },
  { from: "unbound fwd_bogus (validation), deckard fwd_val_cname_sibling", why: "signatures are not verified here" },
  { from: "unbound iter_scrub_dname_*", why: "a DNAME is passed on as it is; its alias comes with it" },
];
