// What is answered when an answer's time has ended and its server fails (RFC 8767), and how long failures are remembered (RFC 9520).

import assert from "node:assert/strict";

import type { Scenario, Unsuitable } from "./scenario.ts";
import { type Scene, optionsOf, rcodeOf } from "./scene.ts";

const SERVFAIL = 2;
const NXDOMAIN = 3;
/** Extended DNS error, and its codes for answers that are expired. */
const EDE = 15;
const STALE_ANSWER = 3;
const STALE_NXDOMAIN = 19;
const STALE_TTL = 30;
const ANSWER = { answers: ["www 60 A 192.0.2.1"] };
const NEWER = { answers: ["www 60 A 192.0.2.2"] };
const DENIAL = { rcode: NXDOMAIN, authorities: ["@ 10 SOA 10"] };
const EMPTY = { authorities: ["@ 10 SOA 10"] };

export const STALE: readonly Scenario[] = [
  {
    from: "unbound serve_expired, serve_expired_client_timeout_servfail",
    title: "an expired answer is given when the server fails, and the next answer is the fresh one",
    run: async (scene) => {
      await scene.exchange("www A", ANSWER);
      await scene.pass(61);
      const stale = await askedWhileFailing(scene, "www A");
      assert.deepEqual(scene.texts(stale.answers), ["www A 192.0.2.1"]);
      await scene.pass(STALE_TTL + 1);
      assert.deepEqual(scene.texts((await answeredOnceMore(scene, "www A", NEWER)).answers), ["www A 192.0.2.2"]);
    },
  },
  {
    from: "unbound serve_expired_reply_ttl, RFC 8767 4",
    title: "an expired answer has a TTL of 30 seconds, whatever it had",
    run: async (scene) => {
      await scene.exchange("www A", { answers: ["www 3600 A 192.0.2.1"] });
      await scene.pass(3_601);
      const stale = await askedWhileFailing(scene, "www A");
      assert.equal(stale.answers[0]?.ttl, STALE_TTL);
    },
  },
  {
    from: "unbound serve_expired (ede-serve-expired), RFC 8914",
    title: "a client with EDNS is told that the answer is expired",
    run: async (scene) => {
      await scene.exchange("www A", ANSWER);
      await scene.pass(61);
      const stale = await askedWhileFailing(scene, "www A", true);
      assert.equal(optionsOf(stale).get(EDE)?.readUInt16BE(0), STALE_ANSWER);
    },
  },
  {
    from: "unbound serve_expired_client_timeout",
    title: "an expired answer is given when the server says nothing",
    run: async (scene) => {
      await scene.exchange("www A", ANSWER);
      await scene.pass(61);
      const stale = await scene.ask("www A").reply();
      assert.deepEqual(scene.texts(stale.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "unbound serve_expired_ttl, RFC 8767 5",
    title: "after cache.max-stale an expired answer is gone",
    settings: ["cache: {max-stale: 1m}"],
    run: async (scene) => {
      await scene.exchange("www A", ANSWER);
      await scene.pass(60 + 60 + 1);
      assert.equal(rcodeOf(await askedWhileFailing(scene, "www A")), "SERVFAIL");
    },
  },
  {
    from: "unbound serve_expired (serve-expired: no)",
    title: "with cache.max-stale 0 no expired answer is given",
    settings: ["cache: {max-stale: 0}"],
    run: async (scene) => {
      await scene.exchange("www A", ANSWER);
      await scene.pass(61);
      assert.equal(rcodeOf(await askedWhileFailing(scene, "www A")), "SERVFAIL");
    },
  },
  {
    from: "unbound serve_expired_ttl_reset",
    title: "the time in which an expired answer may be given does not begin again by giving it",
    settings: ["cache: {max-stale: 5m}"],
    run: async (scene) => {
      await scene.exchange("www A", ANSWER);
      await scene.pass(61);
      assert.equal(rcodeOf(await askedWhileFailing(scene, "www A")), "NOERROR");
      await scene.pass(200);
      assert.equal(rcodeOf(await askedWhileFailing(scene, "www A")), "NOERROR");
      await scene.pass(101);
      assert.equal(rcodeOf(await askedWhileFailing(scene, "www A")), "SERVFAIL");
    },
  },
  {
    from: "unbound serve_expired_0ttl_nxdomain",
    title: "a denial is cached for the SOA's time, and an answer with TTL 0 then replaces it",
    run: async (scene) => {
      await scene.exchange("www A", DENIAL);
      assert.equal(rcodeOf(await scene.ask("www A").reply()), "NXDOMAIN");
      await scene.pass(11);
      const reply = await scene.exchange("www A", { answers: ["www 0 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "unbound serve_expired_0ttl_nodata",
    title: "the same for an empty answer",
    run: async (scene) => {
      await scene.exchange("www A", EMPTY);
      const cached = await scene.ask("www A").reply();
      assert.deepEqual([rcodeOf(cached), cached.answers.length], ["NOERROR", 0]);
      await scene.pass(11);
      const reply = await scene.exchange("www A", { answers: ["www 0 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "RFC 8914 4.20",
    title: "an expired denial is given when the server fails, and named as one",
    run: async (scene) => {
      await scene.exchange("www A", DENIAL);
      await scene.pass(11);
      const stale = await askedWhileFailing(scene, "www A", true);
      assert.equal(rcodeOf(stale), "NXDOMAIN");
      assert.equal(optionsOf(stale).get(EDE)?.readUInt16BE(0), STALE_NXDOMAIN);
    },
  },
  {
    from: "unbound serve_expired_0ttl_servfail, serve_expired_cached_servfail, fwd_0ttlservfail",
    title: "after a failure, the next answer counts, also with TTL 0",
    run: async (scene) => {
      assert.equal(rcodeOf(await askedWhileFailing(scene, "www A")), "SERVFAIL");
      await scene.pass(6);
      const reply = await scene.exchange("www A", { answers: ["www 0 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "unbound serve_expired_cached_servfail_refresh, RFC 9520 3.2",
    title: "a failure is remembered for a moment, so that a client that repeats itself does not reach the server",
    run: async (scene) => {
      assert.equal(rcodeOf(await askedWhileFailing(scene, "www A")), "SERVFAIL");
      assert.equal(rcodeOf(await scene.ask("www A").reply()), "SERVFAIL");
      await scene.nothingReceived();
    },
  },
  {
    from: "unbound serve_expired_zerottl",
    title: "an answer with TTL 0 is not kept, and is not there when the server fails",
    run: async (scene) => {
      await scene.exchange("www A", { answers: ["www 0 A 192.0.2.1"] });
      await scene.pass(1);
      assert.equal(rcodeOf(await askedWhileFailing(scene, "www A")), "SERVFAIL");
    },
  },
  {
    from: "unbound serve_expired_ttl_client_timeout",
    title: "while an expired answer is given, the servers are asked in the background",
    run: async (scene) => {
      await scene.exchange("www A", ANSWER);
      await scene.pass(61);
      await askedWhileFailing(scene, "www A");
      const again = scene.ask("www A");
      assert.deepEqual(scene.texts((await again.reply()).answers), ["www A 192.0.2.1"]);
    },
  },
];

export const NOT_STALE: readonly Unsuitable[] = [
  {
    from: "unbound serve_expired_client_timeout_val_*, serve_expired_val_bogus, serve_expired_wildcard_swap_ad",
    why: "signatures are not verified here",
  },
  { from: "unbound serve_expired_respip_*, serve_expired_rpz_*", why: "answers are not rewritten here" },
  { from: "unbound serve_original_ttl", why: "there is no such mode: a TTL counts down" },
];

/** A client asks while the server says SERVFAIL, as often as it is asked; what the client gets. */
async function askedWhileFailing(
  scene: Scene,
  question: string,
  hasEdns = false,
): Promise<Awaited<ReturnType<Scene["exchange"]>>> {
  const asked = scene.ask(question, hasEdns ? { opt: {} } : {});
  return await scene.whileSaying({ rcode: SERVFAIL }, asked.reply());
}

/** A client asks until the server's new answer is what it gets. */
async function answeredOnceMore(
  scene: Scene,
  question: string,
  said: Parameters<Scene["exchange"]>[1],
): ReturnType<Scene["exchange"]> {
  const first = await scene.whileSaying(said, scene.ask(question).reply());
  return scene.texts(first.answers)[0] === "www A 192.0.2.2"
    ? first
    : await scene.whileSaying(said, scene.ask(question).reply());
}
