// For how long an answer is kept, and what its TTL says meanwhile.

import assert from "node:assert/strict";

import type { Scenario, Unsuitable } from "./scenario.ts";
import { type Scene, rcodeOf } from "./scene.ts";

const NXDOMAIN = 3;
/** The machine's own time passes, too. */
const SLACK_SECONDS = 9;

function assertTtl(ttl: number | undefined, expected: number): void {
  assert.ok(ttl !== undefined && ttl <= expected && ttl >= expected - SLACK_SECONDS, `${ttl} in place of ${expected}`);
}

/** The TTL of what the cache has; no server is asked. */
async function cachedTtl(scene: Scene, question: string): Promise<number | undefined> {
  const { answers, authorities } = await scene.ask(question).reply();
  await scene.nothingReceived();
  return (answers[0] ?? authorities[0])?.ttl;
}

export const TIMES: readonly Scenario[] = [
  {
    from: "unbound ttl_msg, fwd_ttlexpire",
    title: "a cached answer's TTL counts down, and when it has ended the server is asked",
    run: async (scene) => {
      await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] });
      await scene.pass(40);
      assertTtl(await cachedTtl(scene, "www A"), 20);
      await scene.pass(21);
      await scene.exchange("www A", { answers: ["www 60 A 192.0.2.2"] });
    },
  },
  {
    from: "unbound ttl_msg",
    title: "a cached denial's TTL counts down, in its SOA record",
    run: async (scene) => {
      await scene.exchange("www A", { rcode: NXDOMAIN, authorities: ["@ 60 SOA 60"] });
      await scene.pass(40);
      assertTtl(await cachedTtl(scene, "www A"), 20);
    },
  },
  {
    from: "unbound ttl_zero_cacherep",
    title: "in its last second a cached answer still has a TTL above zero",
    run: async (scene) => {
      await scene.exchange("www A", { answers: ["www 10 A 192.0.2.1"] });
      await scene.pass(9);
      const { answers } = await scene.whileSaying({ answers: ["www 10 A 192.0.2.1"] }, scene.ask("www A").reply());
      assert.ok((answers[0]?.ttl ?? 0) >= 1);
    },
  },
  {
    from: "unbound ttl_max",
    title: "cache.max-ttl limits the TTL of an answer, and for how long it is kept",
    settings: ["cache: {max-ttl: 100}"],
    run: async (scene) => {
      await scene.exchange("www A", { answers: ["www 248 A 192.0.2.1"] });
      assertTtl(await cachedTtl(scene, "www A"), 100);
      await scene.pass(101);
      await scene.exchange("www A", { answers: ["www 248 A 192.0.2.2"] });
    },
  },
  {
    from: "unbound ttl_max_negative",
    title: "cache.max-negative-ttl limits that of denials alone",
    settings: ["cache: {max-negative-ttl: 30}"],
    run: async (scene) => {
      await scene.exchange("gone A", { rcode: NXDOMAIN, authorities: ["@ 3600 SOA 3600"] });
      await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] });
      assertTtl(await cachedTtl(scene, "gone A"), 30);
      assertTtl(await cachedTtl(scene, "www A"), 60);
    },
  },
  {
    from: "unbound ttl_min",
    title: "cache.min-ttl is the least that an answer has",
    settings: ["cache: {min-ttl: 100}"],
    run: async (scene) => {
      await scene.exchange("www A", { answers: ["www 5 A 192.0.2.1"] });
      await scene.pass(70);
      assertTtl(await cachedTtl(scene, "www A"), 30);
    },
  },
  {
    from: "RFC 2308 5",
    title: "a denial is kept for the lesser of the SOA's TTL and its last number",
    run: async (scene) => {
      await scene.exchange("one A", { rcode: NXDOMAIN, authorities: ["@ 300 SOA 20"] });
      await scene.exchange("two A", { rcode: NXDOMAIN, authorities: ["@ 20 SOA 300"] });
      assertTtl(await cachedTtl(scene, "one A"), 20);
      assertTtl(await cachedTtl(scene, "two A"), 20);
      await scene.pass(21);
      for (const label of ["one", "two"]) await scene.exchange(`${label} A`, { answers: [`${label} 60 A 192.0.2.1`] });
    },
  },
  {
    from: "RFC 2308 5, DVE-2017-0008",
    title: "a denial without SOA is not kept for long",
    run: async (scene) => {
      await scene.exchange("www A", {});
      await scene.pass(31);
      const reply = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "RFC 2308 5",
    title: "a denial is of one type where the name exists, and of all types where it does not",
    differs:
      "an NXDOMAIN is kept for the type that was asked: servers that deny a name for one type only are met more often than a query is saved",
    run: async (scene) => {
      await scene.exchange("www AAAA", { rcode: NXDOMAIN, authorities: ["@ 60 SOA 60"] });
      const reply = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.1"]);
    },
  },
  {
    from: "RFC 2181 8",
    title: "a TTL with the highest bit set is zero",
    run: async (scene) => {
      await scene.exchange("www A", { answers: [`www ${2 ** 31 + 60} A 192.0.2.1`] });
      const reply = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.2"] });
      assert.deepEqual(scene.texts(reply.answers), ["www A 192.0.2.2"]);
    },
  },
  {
    from: "RFC 2181 5.2",
    title: "records of one set with different TTLs are kept for the least of them",
    run: async (scene) => {
      await scene.exchange("www A", { answers: ["www 600 A 192.0.2.1", "www 10 A 192.0.2.2"] });
      await scene.pass(11);
      const reply = await scene.exchange("www A", { answers: ["www 60 A 192.0.2.3"] });
      assert.equal(rcodeOf(reply), "NOERROR");
    },
  },
  {
    from: "unbound prefetch (fwd_0ttlservfail)",
    title: "an answer that is asked for near its end is refreshed before it ends",
    run: async (scene) => {
      await scene.exchange("www A", { answers: ["www 60 A 192.0.2.1"] });
      await scene.ask("www A").reply();
      await scene.pass(57);
      const asked = scene.ask("www A");
      (await scene.received()).reply({ answers: ["www 60 A 192.0.2.1"] });
      await asked.reply();
      await scene.pass(10);
      assert.equal(rcodeOf(await scene.ask("www A").reply()), "NOERROR");
      await scene.nothingReceived();
    },
  },
];

export const NOT_TIMES: readonly Unsuitable[] = [
  { from: "unbound ttl_min_negative", why: "there is no such setting: a denial is a program's to ask for again" },
  { from: "deckard iter_nottl, iter_minmaxttl", why: "about records that a resolver collects from several replies" },
];
