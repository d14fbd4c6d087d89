// Proves that the order of the list decides, whoever is quicker: the reply of a lower server waits for those before it. By
// hand for the cases that people meet, and for random servers: each answer is one that Docker's order would have given, had
// it waited long enough.

import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";

import { LIMITS } from "../../../../src/base/limits.ts";
import { Trace } from "../../../../src/query/trace.ts";
import { runs } from "../../../support/rig/runs.ts";
import { TYPE } from "../../../support/scripted/builders.ts";
import { Clock } from "../../support/clock.ts";
import { type Script, SimulatedServers } from "../../support/simulated-servers.ts";

const [SERVFAIL, NXDOMAIN, REFUSED] = [2, 3, 5];
const [INTERNAL, PUBLIC] = ["10.1.2.3", "198.51.100.9"];
const TTL = 3_600;

const saying =
  (says: string | number, afterMs = 1): Script =>
  () => ({ says, afterMs });
const silent: Script = () => undefined;
// Fast for all names but one, as a server with a cache.
const slowFor =
  (slowName: string, afterMs: number, says: string | number = INTERNAL): Script =>
  (name) => ({ says, afterMs: name === slowName ? afterMs : 1 });

async function warmUp(servers: SimulatedServers): Promise<void> {
  for (let count = 0; count < 20; count++) await servers.until(servers.ask(`warm${count}.test`));
}

for (const [what, says] of [
  ["denies it", NXDOMAIN],
  ["has another address", PUBLIC],
] as const) {
  test(`the first server is slow for a name, and the second one ${what} at once: the first one's answer counts, also later`, async () => {
    using clock = new Clock();
    for (const afterMs of [60, 120, 200, 600, 800, 1_900]) {
      const servers = new SimulatedServers(clock, [slowFor("vpn.test", afterMs), saying(says)]);
      await warmUp(servers);
      assert.equal((await servers.until(servers.ask("vpn.test"))).says, INTERNAL, `${afterMs} ms`);
      assert.ok(servers.asked[1]?.includes("vpn.test"), "the second one was asked meanwhile");
      await servers.pass(3_000);
      assert.equal((await servers.until(servers.ask("vpn.test"))).says, INTERNAL, `${afterMs} ms, later`);
    }
  });
}

test("both types of a name that takes more than a second are no sign of silence", async () => {
  using clock = new Clock();
  const servers = new SimulatedServers(clock, [slowFor("vpn.test", 1_900), saying(NXDOMAIN)]);
  await warmUp(servers);
  const both = Promise.all([TYPE.A, TYPE.AAAA].map(async (type) => await servers.ask("vpn.test", { type })));
  assert.deepEqual(
    (await servers.until(both)).map(({ says }) => says),
    [INTERNAL, INTERNAL],
  );
});

test("a dead first server costs once, and what the second one says meanwhile is cached briefly", async () => {
  using clock = new Clock();
  for (const says of [PUBLIC, NXDOMAIN]) {
    let isDead = false;
    const servers = new SimulatedServers(clock, [
      () => (isDead ? undefined : { says: INTERNAL, afterMs: 1 }),
      saying(says),
    ]);
    await warmUp(servers);
    isDead = true;
    const startMs = clock.now();
    const names = Array.from({ length: 5 }, (_, index) => `dead${index}.test`);
    const replies = await servers.until(Promise.all(names.map(async (name) => await servers.ask(name))));
    for (const reply of replies) assert.deepEqual(reply, { says, ttl: LIMITS.lowerReplySeconds });
    const tookMs = clock.now() - startMs;
    assert.ok(tookMs <= LIMITS.downAfterMs + 2 * LIMITS.heldCheckMs, `${tookMs} ms`);
    const laterMs = clock.now();
    assert.equal((await servers.until(servers.ask("later.test"))).says, says);
    assert.ok(clock.now() - laterMs <= 20);
    isDead = false;
    await servers.pass(LIMITS.lowerReplySeconds * 1_000);
    await servers.until(servers.ask("trial.test"));
    assert.equal((await servers.until(servers.ask("dead0.test"))).says, INTERNAL, "no longer cached");
  }
});

test("a single question to a dead first server is answered within the patience of a client, and the next one at once", async () => {
  using clock = new Clock();
  const servers = new SimulatedServers(clock, [silent, saying(PUBLIC)]);
  assert.equal((await servers.until(servers.ask("one.test"))).says, PUBLIC);
  assert.ok(clock.now() < 3_000, `${clock.now()} ms`);
  const laterMs = clock.now();
  assert.equal((await servers.until(servers.ask("two.test"))).says, PUBLIC);
  assert.ok(clock.now() - laterMs <= 20);
});

test("a first server that is silent for one name only, and answers others, is waited for", async () => {
  using clock = new Clock();
  const first: Script = (name) => (name === "stuck.test" ? undefined : { says: INTERNAL, afterMs: 1 });
  const servers = new SimulatedServers(clock, [first, saying(PUBLIC)]);
  await warmUp(servers);
  let isDone = false;
  const stuck = servers.ask("stuck.test").finally(() => (isDone = true));
  const startMs = clock.now();
  for (let count = 0; !isDone; count++) {
    await servers.until(servers.ask(`other${count}.test`));
    await servers.pass(100);
  }
  assert.deepEqual(await stuck, { says: PUBLIC, ttl: LIMITS.lowerReplySeconds });
  const tookMs = clock.now() - startMs;
  assert.ok(tookMs >= 4_400 - LIMITS.heldUntilMs && tookMs < 4_400, `${tookMs} ms`);
});

test("errors do not reorder servers, and end the wait", async () => {
  using clock = new Clock();
  for (const [error, ttl] of [
    [SERVFAIL, LIMITS.lowerReplySeconds],
    [REFUSED, TTL],
  ] as const) {
    const first: Script = (name) => ({ says: name.startsWith("vpn") ? INTERNAL : error, afterMs: 300 });
    const servers = new SimulatedServers(clock, [first, saying(PUBLIC)]);
    for (let count = 0; count < 30; count++) {
      const reply = await servers.until(servers.ask(`host.zone${count}.test`));
      assert.deepEqual(reply, { says: PUBLIC, ttl });
    }
    assert.deepEqual(servers.path.health, []);
    assert.equal((await servers.until(servers.ask("vpn.test"))).says, INTERNAL);
  }
});

test("of three, the second one's reply replaces the third one's, and is used when the first one fails", async () => {
  using clock = new Clock();
  const servers = new SimulatedServers(clock, [saying(SERVFAIL, 900), saying(INTERNAL, 600), saying(PUBLIC)]);
  assert.equal((await servers.until(servers.ask("three.test"))).says, INTERNAL);
  const later = new SimulatedServers(clock, [saying(SERVFAIL, 900), saying(SERVFAIL, 800), saying(PUBLIC)]);
  assert.equal((await later.until(later.ask("three.test"))).says, PUBLIC);
});

test("after an outage of all servers, the first one to be back does not speak for those before it", async () => {
  using clock = new Clock();
  let isDead = true;
  const back =
    (script: Script): Script =>
    (name, nowMs) =>
      isDead ? undefined : script(name, nowMs);
  const servers = new SimulatedServers(clock, [back(saying(INTERNAL, 500)), back(saying(NXDOMAIN))]);
  const names = Array.from({ length: 5 }, (_, index) => `dead${index}.test`);
  for (const reply of await servers.until(Promise.all(names.map(async (name) => await servers.ask(name)))))
    assert.equal(reply.says, SERVFAIL);
  isDead = false;
  assert.equal((await servers.until(servers.ask("back.test"))).says, INTERNAL);
  assert.deepEqual(servers.path.health.slice(0, 2), ["down: does not answer", "down: does not answer"]);
});

test("with rotation and in parallel order, the first reply counts, and lives as long as it says", async () => {
  using clock = new Clock();
  for (const forward of [{ rotates: true }, { order: "parallel" }] as const) {
    const servers = new SimulatedServers(clock, [saying(INTERNAL, 900), saying(PUBLIC, 10)], { forward });
    assert.deepEqual(await servers.until(servers.ask("equal.test")), { says: PUBLIC, ttl: TTL });
  }
});

test("a packet that is lost on its way to the first server is sent again when the second one is asked", async () => {
  using clock = new Clock();
  let lost = 1;
  const servers = new SimulatedServers(clock, [
    () => (lost-- > 0 ? undefined : { says: INTERNAL, afterMs: 1 }),
    saying(PUBLIC),
  ]);
  assert.equal((await servers.until(servers.ask("lost.test"))).says, INTERNAL);
  assert.equal(servers.asked[0]?.length, 2);
  assert.ok(clock.now() <= LIMITS.hedgeMsFirst + 20);
});

test("without room for the bytes of its reply, a lower server counts as failed, and the first one is waited for", async () => {
  using clock = new Clock();
  const servers = new SimulatedServers(clock, [saying(INTERNAL, 900), saying(PUBLIC)]);
  const [client] = servers.clients;
  const { each } = LIMITS.forwardBytes;
  const query = servers.ask("full.test");
  const taken = each - (client?.shares.queryBytes.taken ?? 0);
  assert.equal(client?.shares.queryBytes.take(taken), true);
  assert.equal((await servers.until(query)).says, INTERNAL);
  client?.shares.queryBytes.give(taken);
  assert.equal(client?.shares.queryBytes.taken, 0);
});

test("the bytes of a held reply are the container's while it is held, and no longer", async () => {
  using clock = new Clock();
  const servers = new SimulatedServers(clock, [saying(INTERNAL, 900), saying(PUBLIC)]);
  const [client] = servers.clients;
  const query = servers.ask("held.test");
  const before = client?.shares.queryBytes.taken ?? 0;
  await servers.pass(LIMITS.hedgeMsFirst + 20);
  assert.ok((client?.shares.queryBytes.taken ?? 0) > before);
  await servers.until(query);
  assert.equal(client?.shares.queryBytes.taken, 0);
});

test("what a container gets because a server is down for it alone is not cached for others", async () => {
  using clock = new Clock();
  const first: Script = (name) => (name.startsWith("dead") ? undefined : { says: INTERNAL, afterMs: 1 });
  const servers = new SimulatedServers(clock, [first, saying(PUBLIC)], {}, 2);
  await servers.until(servers.ask("warm.test", { by: 1 }));
  const names = Array.from({ length: 5 }, (_, index) => `dead${index}.test`);
  await servers.until(Promise.all(names.map(async (name) => await servers.ask(name))));
  assert.deepEqual(await servers.until(servers.ask("vpn.test")), { says: PUBLIC, ttl: LIMITS.lowerReplySeconds });
  assert.equal((await servers.until(servers.ask("vpn.test", { by: 1 }))).says, INTERNAL);
});

test("a container whose query joined another one's gets at least what that one got", async () => {
  using clock = new Clock();
  let isDead = false;
  const first: Script = () => (isDead ? undefined : { says: INTERNAL, afterMs: 300 });
  const servers = new SimulatedServers(clock, [first, saying(PUBLIC, 900)], {}, 2);
  for (const by of [0, 1]) await servers.until(servers.ask(`warm${by}.test`, { by }));
  isDead = true;
  const both = Promise.all([0, 1].map(async (by) => await servers.ask("both.test", { by })));
  assert.deepEqual(
    (await servers.until(both)).map(({ says }) => says),
    [PUBLIC, PUBLIC],
  );
});

test("in sequential order, who joined another one's query has the first server's reply, not what that one got of a lower one", async () => {
  using clock = new Clock();
  let isDead = false;
  const first: Script = () => (isDead ? undefined : { says: INTERNAL, afterMs: 1 });
  const forward = { order: "sequential" } as const;
  const servers = new SimulatedServers(clock, [first, saying(NXDOMAIN)], { forward }, 2);
  for (const by of [0, 1]) await servers.until(servers.ask(`warm${by}.test`, { by }));
  isDead = true;
  // Three signs of silence, so that it is down for the first container alone.
  const down = Promise.all([0, 1, 2].map(async (each) => await servers.ask(`dead${each}.test`)));
  await servers.pass(2_000);
  const both = Promise.all([0, 1].map(async (by) => await servers.ask("both.test", { by })));
  await servers.pass(1);
  isDead = false;
  await servers.until(down);
  assert.equal((await servers.until(both))[1]?.says, INTERNAL);
});

test("a held reply counts before that of a server behind its own", async () => {
  using clock = new Clock();
  const servers = new SimulatedServers(clock, [silent, saying(INTERNAL, 301), saying(PUBLIC, 701)]);
  const query = servers.ask("held.test");
  // The third sign of silence, just before the last server replies: nobody looks at what is held in between.
  await servers.pass(2 * LIMITS.hedgeMsFirst + LIMITS.retransmitMs);
  const other = servers.ask("other.test");
  assert.equal((await servers.until(query)).says, INTERNAL);
  await servers.until(other);
});

test("explain tells which reply was held, for whom, and why it was used", async () => {
  using clock = new Clock();
  const explained = async (first: Script): Promise<string> => {
    const servers = new SimulatedServers(clock, [first, saying(NXDOMAIN)]);
    const trace = new Trace();
    await servers.until(servers.ask("vpn.test", { trace }));
    return trace.steps.flatMap(({ why, events = [] }) => [why, ...events.map(({ what }) => what)]).join("\n");
  };
  const waited = await explained(saying(INTERNAL, 800));
  assert.match(waited, /answered NXDOMAIN after [\d.]+ ms: held until host\(10\.0\.0\.1\) has answered/);
  assert.match(waited, /answered by host\(10\.0\.0\.1\)/);
  assert.match(await explained(saying(SERVFAIL, 800)), /its NXDOMAIN is used; host\(10\.0\.0\.1\) failed: SERVFAIL/);
  const given = await explained(silent);
  assert.match(given, /its NXDOMAIN is used; host\(10\.0\.0\.1\) is down/);
  assert.match(given, /cached for 30 s, as host\(10\.0\.0\.1\) may answer otherwise/);
});

// Where a server is silent for longer than this, it counts as dead, and its place is taken for as long as below.
const DELAY_MS_MAX = 900;
const NAMES = ["a.test", "b.test", "c.test", "d.other.test"];
// A server is known to be back when it has replied, and what another one said until then may be cached for as long as this.
const LOWER_REPLY_LASTS_MS = LIMITS.lowerReplySeconds * 1_000 + 5_000;

const deaths = fc.array(fc.record({ fromMs: fc.nat(200_000), forMs: fc.nat(20_000) }), { maxLength: 2 });
const aServer = fc.record({
  deaths,
  names: fc.tuple(
    ...NAMES.map(() =>
      fc.record({
        says: fc.constantFrom("address", "address", NXDOMAIN, NXDOMAIN, SERVFAIL, REFUSED),
        afterMs: fc.integer({ min: 1, max: DELAY_MS_MAX }),
      }),
    ),
  ),
});
const questions = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.nat(300), fc.nat(30_000), fc.nat(120_000)),
    name: fc.nat(NAMES.length - 1),
    by: fc.nat(1),
  }),
  { minLength: 1, maxLength: 40 },
);

test(
  "random servers: each answer is one that Docker's order would have given, had it waited",
  { timeout: 300_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(aServer, { minLength: 1, maxLength: 3 }), questions, async (declared, asked) => {
        using clock = new Clock();
        const saidBy = (index: number, name: number): string | number => {
          const says = declared[index]?.names[name]?.says ?? SERVFAIL;
          return typeof says === "number" ? says : `10.0.${index}.${name}`;
        };
        const isDead = (index: number, fromMs: number, untilMs: number): boolean =>
          declared[index]?.deaths.some((death) => death.fromMs <= untilMs && death.fromMs + death.forMs >= fromMs) ===
          true;
        const repliedMs = declared.map((): number[] => []);
        const scripts = declared.map(({ names }, index): Script => (name, nowMs) => {
          const number = NAMES.indexOf(name);
          const afterMs = names[number]?.afterMs ?? 1;
          if (isDead(index, nowMs, nowMs + afterMs)) return undefined;
          // What a probe for loops is told says nothing of the server.
          if (number >= 0) repliedMs[index]?.push(nowMs + afterMs);
          return { says: saidBy(index, number), afterMs };
        });
        const mayBeDown = (index: number, fromMs: number, untilMs: number): boolean =>
          declared[index]?.deaths.some((death) => {
            const backMs = repliedMs[index]?.find((ms) => ms >= death.fromMs + death.forMs) ?? Infinity;
            return death.fromMs <= untilMs && backMs + LOWER_REPLY_LASTS_MS >= fromMs;
          }) === true;
        const allowed = (name: number, fromMs: number, untilMs: number): Set<string | number> => {
          const answers = new Set<string | number>();
          for (const index of declared.keys()) {
            const says = saidBy(index, name);
            const isAnswer = says !== SERVFAIL && says !== REFUSED;
            if (isAnswer) answers.add(says);
            if (isAnswer && !mayBeDown(index, fromMs, untilMs)) return answers;
          }
          return answers.add(SERVFAIL);
        };
        const servers = new SimulatedServers(clock, scripts, {}, 2);
        const checks: Promise<string | undefined>[] = [];
        for (const { afterMs, name, by } of asked) {
          await servers.pass(afterMs);
          const fromMs = clock.now();
          const wrong = async (): Promise<string | undefined> => {
            const { says } = await servers.ask(NAMES[name] ?? "", { by });
            const expected = allowed(name, fromMs, clock.now());
            if (expected.has(says)) return undefined;
            return `${NAMES[name]} at ${fromMs}: ${says} instead of ${[...expected].join(" or ")}`;
          };
          checks.push(wrong());
        }
        const found = await servers.until(Promise.all(checks));
        const wrongs = found.filter((wrong) => wrong !== undefined);
        if (wrongs.length > 0) throw new Error(wrongs.join("; "));
      }),
      { numRuns: runs(25), includeErrorInReport: true },
    );
  },
);
