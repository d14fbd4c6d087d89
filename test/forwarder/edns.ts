// EDNS between the client, dns11 and its servers (RFC 6891): what is passed on, and what is asked of a server that does not know it.

import assert from "node:assert/strict";

import { type OptParts, TYPE, aPointer, aRecord } from "../support/scripted/builders.ts";
import type { Scenario, Unsuitable } from "./scenario.ts";
import { optionsOf, rcodeOf } from "./scene.ts";

const FORMERR = 1;
const NOTIMP = 4;
const COOKIE = 10;
const NSID = 3;
const CLIENT_SUBNET = 8;
const KEEPALIVE = 11;
const PADDING = 12;
const DO = 0x8000;
const UDP_SIZE = 1232;
const ADDRESS = aRecord({ owner: aPointer(12), type: TYPE.A, ttl: 60, data: Buffer.of(192, 0, 2, 1) });
const ANSWER = { answers: ["www 60 A 192.0.2.1"] };
const WITH: { readonly opt: OptParts } = { opt: { udpSize: 4096, isDnssecOk: true } };

export const EDNS: readonly Scenario[] = [
  {
    from: "RFC 6891 6.2.1",
    title: "a client without EDNS: the server is asked without, and no OPT is in the answer",
    run: async (scene) => {
      const asked = scene.ask("www A");
      const received = await scene.received();
      assert.equal(received.opt, undefined);
      received.reply(ANSWER);
      assert.deepEqual((await asked.reply()).additionals, []);
    },
  },
  {
    from: "RFC 6891 6.2.5, 7",
    title: "a client with EDNS: the server is asked with our size and the client's DO, and the answer has an OPT",
    run: async (scene) => {
      const asked = scene.ask("www A", WITH);
      const received = await scene.received();
      assert.deepEqual([received.opt?.class, (received.opt?.ttl ?? 0) & DO], [UDP_SIZE, DO]);
      received.reply({ ...ANSWER, opt: { isDnssecOk: true } });
      const { additionals } = await asked.reply();
      assert.equal(additionals.length, 1);
    },
  },
  {
    from: "unbound edns_downstream_cookies, edns_nsid_repeat, RFC 7873 5.4",
    title: "cookies, NSID, keepalive and padding of a client are not passed on, however many there are",
    differs:
      "unbound answers cookies and NSID; a container's client is behind no network from which it could be forged",
    run: async (scene) => {
      const many = Array.from({ length: 100 }, () => [NSID, Buffer.alloc(0)] as const);
      const hop = [COOKIE, PADDING].map((code) => [code, Buffer.alloc(8, 1)] as const);
      const asked = scene.ask("www A", { opt: { options: [...many, ...hop, [KEEPALIVE, Buffer.alloc(0)]] } });
      const received = await scene.received();
      assert.deepEqual([...optionsOf(received.query).keys()], []);
      received.reply({ ...ANSWER, opt: { options: [[COOKIE, Buffer.alloc(16, 2)]] } });
      assert.deepEqual([...optionsOf(await asked.reply()).keys()], []);
    },
  },
  {
    from: "RFC 7871 7.1",
    title: "a client's own subnet option reaches the server, and its answer that client alone",
    run: async (scene) => {
      const subnet = Buffer.from("00011800c00002", "hex");
      const asked = scene.ask("www A", { opt: { options: [[CLIENT_SUBNET, subnet]] } });
      const received = await scene.received();
      assert.deepEqual(optionsOf(received.query).get(CLIENT_SUBNET), subnet);
      received.reply({ ...ANSWER, opt: { options: [[CLIENT_SUBNET, Buffer.from("00011818c00002", "hex")]] } });
      await asked.reply();
      const other = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.2"] });
      assert.deepEqual(scene.texts(other.answers), ["www A 192.0.2.2"]);
    },
  },
  {
    from: "unbound edns_attached_once_per_upstream",
    title: "a query that goes on to the next server has one OPT there, too",
    servers: 2,
    run: async (scene) => {
      const asked = scene.ask("www A", WITH);
      (await scene.received(1)).reply({ rcode: 2 });
      const second = await scene.received(2);
      assert.equal(second.query.additionals.length, 1);
      second.reply(ANSWER);
      assert.equal((await asked.reply()).additionals.length, 1);
    },
  },
  {
    from: "unbound fwd_edns_bksec, fwd_no_edns, DVE-2018-0002",
    title: "FORMERR to EDNS: asked again without, and the client has its answer",
    run: async (scene) => {
      const asked = scene.ask("www A", WITH);
      (await scene.received()).reply({ rcode: FORMERR });
      const again = await scene.received();
      assert.equal(again.opt, undefined);
      again.reply(ANSWER);
      const reply = await asked.reply();
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "unbound edns_cache",
    title: "that a server does not know EDNS is remembered",
    run: async (scene) => {
      const asked = scene.ask("www A", { opt: {} });
      (await scene.received()).reply({ rcode: FORMERR });
      (await scene.received()).reply(ANSWER);
      await asked.reply();
      const next = scene.ask("other A", { opt: {} });
      const received = await scene.received();
      assert.equal(received.opt, undefined);
      received.reply({ answers: ["other 60 A 192.0.2.2"] });
      await next.reply();
    },
  },
  {
    from: "unbound fwd_edns_probe",
    title: "FORMERR with and without EDNS is of that name; the next one is asked with EDNS",
    run: async (scene) => {
      const nasty = await scene.whileSaying({ rcode: FORMERR }, scene.ask("nasty A", WITH).reply());
      assert.notEqual(rcodeOf(nasty), "NOERROR");
      const asked = scene.ask("www A", WITH);
      const received = await scene.received();
      assert.notEqual(received.opt, undefined);
      received.reply(ANSWER);
      await asked.reply();
    },
  },
  {
    from: "DVE-2020-0001",
    title: "FORMERR without a question is understood as a rejection of EDNS",
    run: async (scene) => {
      const asked = scene.ask("www A", WITH);
      (await scene.received()).reply({ rcode: FORMERR, question: Buffer.alloc(0) });
      const again = await scene.received();
      assert.equal(again.opt, undefined);
      again.reply(ANSWER);
      assert.deepEqual(scene.texts((await asked.reply()).answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "DVE-2017-0020",
    title: "BADVERS to a query of version 0 is understood as a rejection of EDNS",
    run: async (scene) => {
      const asked = scene.ask("www A", WITH);
      const badvers = Buffer.from("00002904d0010000000000", "hex");
      (await scene.received()).reply({ additionals: [badvers] });
      const again = await scene.received();
      again.reply(ANSWER);
      assert.deepEqual(scene.texts((await asked.reply()).answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "DVE-2017-0012",
    title: "NOTIMP to EDNS, with octets that no count has, is understood as a rejection of EDNS",
    run: async (scene) => {
      const asked = scene.ask("www A", WITH);
      (await scene.received()).reply({ rcode: NOTIMP, tail: Buffer.from("0000290200000000000000", "hex") });
      const again = await scene.received();
      assert.equal(again.opt, undefined);
      again.reply(ANSWER);
      assert.deepEqual(scene.texts((await asked.reply()).answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "DVE-2017-0004",
    title: "a reply to EDNS that cannot be read is none; a client without EDNS is answered",
    differs: "nothing is built around it, as its report advises; the next server of the list is asked",
    run: async (scene) => {
      const broken = { answers: [Buffer.concat([Buffer.alloc(11), ADDRESS])] };
      assert.equal(rcodeOf(await scene.whileSaying(broken, scene.ask("www A", WITH).reply())), "SERVFAIL");
      const plain = await scene.exchange("other A", { answers: ["other 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(plain.answers), ["other A 192.0.2.1"]);
    },
  },
  {
    from: "DVE-2020-0004",
    title: "a server that is silent about EDNS is asked without",
    run: async (scene) => {
      const asked = scene.ask("www A", { opt: {} });
      await scene.received();
      const again = await scene.received();
      assert.equal(again.opt, undefined);
      again.reply(ANSWER);
      assert.deepEqual(scene.texts((await asked.reply()).answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "DVE-2020-0004",
    title: "a client that wants signatures is not given an answer without them at the first silence",
    differs: "such a query is asked with EDNS until silence has been met three times: a packet may have been lost",
    run: async (scene) => {
      const reply = scene.ask("www A", WITH).reply();
      const first = await scene.received();
      const second = await scene.received(1, { isAgain: true });
      assert.deepEqual([first.opt?.type, second.opt?.type], [41, 41]);
      await reply;
    },
  },
  {
    from: "DVE-2018-0001",
    title: "a denial that comes with EDNS only is the answer",
    differs:
      "a server that lies about a name cannot be told from one that knows; a client without EDNS has what it says then",
    run: async (scene) => {
      const denied = await scene.exchange("portal A", { rcode: 3, opt: {} }, WITH);
      assert.equal(rcodeOf(denied), "NXDOMAIN");
      const plain = await scene.exchange("portal A", { answers: ["portal 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(plain.answers), ["portal A 192.0.2.1"]);
    },
  },
  {
    from: "RFC 6891 6.1.1",
    title: "a server's reply with an OPT that nobody asked for is an answer, without it",
    run: async (scene) => {
      const reply = await scene.exchange("www A", { ...ANSWER, opt: {} });
      assert.deepEqual([scene.texts(reply.answers), reply.additionals.length], [["www A 192.0.2.1"], 0]);
    },
  },
];

export const NOT_EDNS: readonly Unsuitable[] = [
  { from: "unbound edns_client_string*", why: "nothing about the client is added to a query" },
  { from: "unbound edns_keepalive", why: "idle connections are closed as the shares say; no time is promised" },
  { from: "unbound disable_edns_do", why: "DO is the client's" },
  { from: "unbound ede_acl_refused, ede_localzone_*, ede_cache_snoop_*", why: "about unbound's own refusals" },
  { from: "unbound padding, subnet_cache_lookup", why: "no TLS to clients; answers for a subnet are not cached" },
  { from: "DVE-2017-0005, DVE-2017-0018", why: "no version but 0 is ever asked with" },
];
