/**
 * Attaching and handing back under load: a container uses Docker's resolver before dns11 starts, and again as soon as dns11
 * ends, however it ends. Clients inside the container query all the time and count failures.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { stdoutOf } from "../support/program/command.ts";
import type { Container } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { Dns11, startDns11 } from "../support/program/dns11.ts";
import type { Engine } from "../support/engine/engine.ts";
import { startPair } from "../support/engine/pair.ts";
import {
  droppedIn,
  failuresAfter,
  outcomesOf,
  type QueryEnd,
  QueryLoop,
  queryLoop,
} from "../support/client/query-loop.ts";
import { inTime, pause, waitFor } from "../support/rig/wait.ts";

const PER_SECOND = 400;
const REUSED_PER_SECOND = 100;
/** How long the clients run before and after the event. */
const MARGIN_MS = 1_000;
/** How many queries a flood has, and how many of them have arrived when dns11 is stopped. */
const FLOOD = { all: 16_000, atStop: 4_000 };
/** At how many moments of attaching dns11 is killed, and for how long that lasts. */
const MOMENTS = Number(process.env["KEEPER_TIMES"] ?? 6);
const ATTACHING_MS = 24;

const DOCKERS_TTL = 600;

let engine: Engine;
let web: Container;
let client: Container;
/** Of several instances, one after the other. */
let stateDir: string;

before(async () => {
  ({ engine, web, client } = await startPair());
  stateDir = join(engine.folder, "s");
  mkdirSync(stateDir);
});
after(async () => await engine[Symbol.asyncDispose]());

/** The results of a client with a new socket per query, and of one that reuses its socket. */
interface Results {
  readonly fresh: readonly QueryEnd[];
  readonly reused: readonly QueryEnd[];
  /** Packets that the kernel has dropped for want of room, as it does on a busy machine and during a flood. */
  readonly dropped: number;
}

/** Two clients query all the time, while `act` runs. Returns their results. */
async function whileQuerying(act: () => Promise<void>): Promise<Results> {
  const droppedBefore = await droppedIn(client);
  await using fresh = await QueryLoop.start(client, { name: "web", perSecond: PER_SECOND });
  await using reused = await QueryLoop.start(client, { name: "web", perSecond: REUSED_PER_SECOND, sourcePort: "any" });
  await pause(MARGIN_MS);
  await act();
  await pause(MARGIN_MS);
  const ends = { fresh: await fresh.stop(), reused: await reused.stop() };
  return { ...ends, dropped: (await droppedIn(client)) - droppedBefore };
}

function assertServed({ fresh, reused, dropped }: Results, sinceMs = 0): void {
  for (const ends of [fresh, reused]) {
    const failures = failuresAfter(ends, sinceMs);
    const others = failures.filter((failure) => !failure.startsWith("timeout"));
    assert.deepEqual(others, []);
    assert.ok(failures.length <= dropped, `${failures.join(", ")}; ${dropped} dropped by the kernel`);
    assert.ok((outcomesOf(ends, sinceMs)["NOERROR"] ?? 0) > REUSED_PER_SECOND / 2, "queries were sent");
  }
}

async function assertNothingLeft(...containers: readonly Container[]): Promise<void> {
  for (const container of containers) {
    assert.doesNotMatch((await container.enter("nft", ["list", "ruleset"])).stdout, /dns11/);
  }
}

test("attaching loses no query, neither of new sockets nor of a reused one; SIGTERM hands back, and leaves no rules", async () => {
  // With all capabilities, so that it also restarts itself to drop them.
  let dns11: Dns11 | undefined;
  try {
    const results = await whileQuerying(async () => {
      dns11 = await startDns11(engine, { prefix: [] });
      await localQueries(dns11, "client", PER_SECOND);
    });
    assertServed(results);
    assertServed(await whileQuerying(async () => assert.equal(await dns11?.stop(), 0)));
    await assertNothingLeft(client);
  } finally {
    await dns11?.[Symbol.asyncDispose]();
  }
});

test("SIGKILL hands back: once Docker answers, no query is lost any more", async (context) => {
  await using dns11 = await startDns11(engine, { stateDir });
  let handedBackMs = 0;
  const results = await whileQuerying(async () => {
    dns11.kill("SIGKILL");
    await dns11.exited;
    await waitFor("Docker's own TTL", async () =>
      (await dig(client, "web", "+time=1")).answer[0]?.ttl === DOCKERS_TTL ? true : undefined,
    );
    handedBackMs = Date.now();
  });
  assertServed(results, handedBackMs);
  const [fresh, reused] = [results.fresh, results.reused].map((ends) => failuresAfter(ends, 0).length);
  context.diagnostic(
    `SIGKILL under ${PER_SECOND} queries/s: ${fresh} queries of new sockets and ${reused} of a reused socket lost in total`,
  );
  assert.deepEqual(dataOf(await dig(client, "web")), [web.address("n1")]);
});

test("a new instance after a kill serves again, in its own conntrack zone, and SIGTERM during a flood drains it", async () => {
  await using dns11 = await startDns11(engine, { stateDir });
  assert.equal((await dns11.container("client"))?.state, "attached");
  const ends = await queryLoop(client, { name: "web", perSecond: PER_SECOND, forMs: MARGIN_MS });
  assert.deepEqual(Object.keys(outcomesOf(ends)), ["NOERROR"]);
  const questions = join(engine.folder, "flood");
  writeFileSync(questions, "web A\n");
  const bounds = ["-n", String(FLOOD.all), "-l", "100", "-t", "30"];
  const flood = web.enter("dnsperf", ["-s", "127.0.0.11", "-d", questions, "-c", "8", "-q", "1000", ...bounds]);
  const results = await whileQuerying(async () => {
    await localQueries(dns11, "web", FLOOD.atStop);
    assert.equal(await dns11.stop(), 0);
  });
  assertServed(results);
  await assertNothingLeft(client, web);
  assert.match(stdoutOf(await flood, "dnsperf"), /NOERROR \d+ \(100\.00%\)/);
});

/** Waits until this many of a container's queries were answered locally. */
async function localQueries(dns11: Dns11, name: string, count: number): Promise<void> {
  await waitFor(`${count} queries of ${name}`, async () =>
    ((await dns11.container(name))?.counters?.["local"] ?? 0) > count ? true : undefined,
  );
}

test("a process with a blocked event loop is killed beside its keeper, and the namespaces are handed back", async () => {
  const wedge = new URL("../support/program/wedge-main.js", import.meta.url).href;
  await using dns11 = await startDns11(engine, { env: { NODE_OPTIONS: `--import=${wedge}` } });
  await waitFor("the keeper", async () => ((await dns11.status()).keeper.state === "watching" ? true : undefined));
  dns11.kill("SIGWINCH");
  // On a busy machine the alarm may be sooner than the keeper, which kernel/keeper has without one.
  assert.match(String(await inTime(dns11.exited, "the end")), /^SIG(?:KILL|ALRM)$/);
  assert.equal((await dig(client, "+time=1", "+tries=10", "web")).answer[0]?.ttl, DOCKERS_TTL);
});

test("without a keeper the alarm ends a process with a blocked event loop, and the namespaces are handed back", async () => {
  const wedge = new URL("../support/program/wedge-main.js", import.meta.url).href;
  const env = { NODE_OPTIONS: `--import=${wedge}` };
  await using dns11 = await startDns11(engine, { env, settings: { keeper: "off" } });
  dns11.kill("SIGWINCH");
  await waitFor("the event loop to be blocked", () => (dns11.log.includes("blocked\n") ? true : undefined));
  // On a busy machine the alarm may have ended it before the query, which Docker answers then.
  assert.notEqual((await dig(client, "+time=1", "web")).answer[0]?.ttl, 5, "a blocked process answers no query");
  assert.equal(await inTime(dns11.exited, "the alarm"), "SIGALRM");
  assert.equal((await dig(client, "web", "+time=1", "+tries=10")).answer[0]?.ttl, DOCKERS_TTL);
});

test("after a crash at any moment of attaching, Docker's resolver answers and no rules are left", async () => {
  for (let moment = 0; moment < MOMENTS; moment++) {
    const ms = (moment * ATTACHING_MS) / MOMENTS;
    await using dns11 = new Dns11(engine.host);
    await waitFor("dns11 to serve", () => (dns11.log.includes("serving") ? true : undefined), { everyMs: 2 });
    await pause(ms);
    dns11.kill("SIGKILL");
    await dns11.exited;
    const reply = await dig(client, "web", "+time=1", "+tries=10");
    assert.equal(reply.answer[0]?.ttl, DOCKERS_TTL, `killed ${ms} ms after it started to serve`);
    await assertNothingLeft(client);
  }
});
