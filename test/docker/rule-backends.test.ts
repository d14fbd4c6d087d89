/**
 * The rule backend nft, for kernels without owned tables, with a real engine: it serves as nft-owner does, its rules are repaired when
 * they are flushed, removed at SIGTERM, and stay after SIGKILL until a cleanup or the next start of dns11.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { RuleBackend } from "../../src/base/model/rule-backend.ts";
import type { Container } from "../support/engine/container.ts";
import { type DigReply, dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import type { Engine } from "../support/engine/engine.ts";
import { startPair } from "../support/engine/pair.ts";
import { outcomesOf, QueryLoop } from "../support/client/query-loop.ts";
import { inTime, pause, waitFor } from "../support/rig/wait.ts";

/** How long the clients run before and after the event. */
const MARGIN_MS = 500;
/** Docker's resolver answers some of them, and its socket holds only a few hundred. */
const PER_SECOND = 100;
/** The TTLs show which resolver answered. */
const DOCKERS_TTL = 600;
const OUR_TTL = 5;
const OURS = /dns11/;

let engine: Engine;
let web: Container;
let client: Container;
/** Of the tests that come before a kill. */
let serving: Dns11;
let stateDir: string;

before(async () => {
  ({ engine, web, client } = await startPair());
  stateDir = mkdtempSync(join(tmpdir(), "d11-rules-"));
});
after(async () => {
  await serving[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  rmSync(stateDir, { recursive: true });
});

async function assertAnswered(ttl: number): Promise<void> {
  for (const transport of ["+notcp", "+tcp"]) {
    const reply = await dig(client, "web", transport);
    assert.deepEqual(dataOf(reply), [web.address("n1")], reply.raw);
    assert.equal(reply.answer[0]?.ttl, ttl, reply.raw);
  }
}

async function rules(): Promise<string> {
  return (await client.enter("nft", ["list", "ruleset"])).stdout;
}

async function serve(backend: RuleBackend, options: { readonly stateDir?: string } = {}): Promise<Dns11> {
  return await startDns11(engine, { ...options, settings: { "rule-backend": backend, keeper: "off" } });
}

async function cleanup(folder: string): Promise<string> {
  const { code, stdout, stderr } = await dns11(["cleanup", "-H", engine.host, "--state-dir", folder]);
  assert.equal(code, 0, stderr);
  return stdout;
}

async function kill(instance: Dns11): Promise<void> {
  instance.kill("SIGKILL");
  await inTime(instance.exited, "the end of dns11");
}

/** The rules redirect to a closed port. Over UDP not even the ICMP error arrives, because it is not in our conntrack zone. */
async function assertUnanswered(): Promise<void> {
  const replies = await Promise.all(
    ["+notcp", "+tcp"].map(async (transport) => await dig(client, "web", transport, "+time=1")),
  );
  for (const { status, raw } of replies) assert.equal(status, "", raw);
  assert.match(replies[0]?.raw ?? "", /timed out/);
}

/**
 * No query is lost while `act` runs. What is lost before, while `first` runs, and after does not count: Docker's resolver may
 * answer then, which loses some on a busy machine.
 */
async function assertNoneLost(act: () => Promise<void>, first?: () => Promise<void>): Promise<void> {
  await using fresh = await QueryLoop.start(client, { name: "web", perSecond: PER_SECOND });
  await using reused = await QueryLoop.start(client, { name: "web", perSecond: PER_SECOND / 4, sourcePort: "any" });
  await pause(MARGIN_MS);
  await first?.();
  const sinceMs = Date.now();
  await act();
  const untilMs = Date.now();
  await pause(MARGIN_MS);
  for (const loop of [fresh, reused]) {
    const during = (await loop.stop()).filter(({ atMs }) => atMs >= sinceMs && atMs <= untilMs);
    assert.deepEqual(Object.keys(outcomesOf(during)), ["NOERROR"]);
  }
}

/** Waits for a hundred more of them. */
async function localQueries(instance: Dns11): Promise<void> {
  const local = async (): Promise<number> => (await instance.container("client"))?.counters?.["local"] ?? 0;
  const already = await local();
  await waitFor("queries to reach dns11", async () => ((await local()) > already + 100 ? true : undefined));
}

/** Ends with a kill: its rules stay, and Docker's resolver does not answer. */
async function startAndKill(): Promise<void> {
  await using instance = await serve("nft", { stateDir });
  await kill(instance);
  assert.match(await rules(), OURS);
}

test("attaching loses no query", async () => {
  await assertNoneLost(async () => {
    serving = await serve("nft");
    await localQueries(serving);
  });
});

test("names resolve, and a warning says that rules outlive a kill", async () => {
  assert.equal((await serving.status()).ruleBackend, "nft");
  const shown = await dns11(["status", "-H", engine.host, "--state-dir", serving.stateDir]);
  assert.match(shown.stdout, /rules +nft \(they stay if dns11 is killed/);
  await serving.logs(/stay when dns11 is killed or hangs/);
  await assertAnswered(OUR_TTL);
  assert.match(await rules(), OURS);
});

test("rules of a running serving are neither taken over nor cleaned up", async () => {
  await using second = await serve("nft");
  const refused = await second.container("client");
  assert.equal(refused?.code, "OWNED_ELSEWHERE", JSON.stringify(refused));
  assert.equal(await second.stop(), 0);
  assert.match(await cleanup(second.stateDir), /client: kept .*: a running process owns it/);
  await assertAnswered(OUR_TTL);
});

test("flushed rules are installed again", async () => {
  await client.enter("nft", ["delete", "table", "ip", "dns11"]);
  const ours = async (): Promise<DigReply | undefined> => {
    const reply = await dig(client, "web");
    return reply.answer[0]?.ttl === OUR_TTL ? reply : undefined;
  };
  await waitFor("dns11 to answer again", ours);
  // It counts when a probe has shown that it helped.
  await waitFor("the repair to be counted", async () =>
    (await serving.waitFor("client", "attached")).repairs === 1 ? true : undefined,
  );
});

test("SIGTERM loses no query, and leaves no rules", async () => {
  await assertNoneLost(
    async () => assert.equal(await serving.stop(), 0),
    async () => await localQueries(serving),
  );
  assert.doesNotMatch(await rules(), OURS);
  await assertAnswered(DOCKERS_TTL);
});

test("after SIGKILL queries fail until cleanup, which prints what it removed", async () => {
  await startAndKill();
  await assertUnanswered();
  const output = await cleanup(stateDir);
  for (const name of ["client", "web"])
    assert.ok(output.includes(`${name}: removed orphaned table ip "dns11"\n`), output);
  assert.doesNotMatch(await rules(), OURS);
  await assertAnswered(DOCKERS_TTL);
});

test("an instance that starts after SIGKILL takes over, with this backend and with nft-owner", async () => {
  await startAndKill();
  for (const next of ["nft", "nft-owner"] as const) {
    await using second = await serve(next, { stateDir });
    assert.equal((await second.status()).ruleBackend, next);
    await assertAnswered(OUR_TTL);
    if (next === "nft") {
      await kill(second);
      continue;
    }
    assert.equal(await second.stop(), 0);
    assert.doesNotMatch(await rules(), OURS);
    await assertAnswered(DOCKERS_TTL);
  }
});

test("nft with a keeper: after SIGKILL Docker's resolver answers, and no rules are left", async () => {
  await using instance = await startDns11(engine, { settings: { "rule-backend": "nft" } });
  assert.equal((await instance.status()).ruleBackend, "nft");
  await waitFor("the keeper to watch both namespaces", async () => {
    const { keeper } = await instance.status();
    return keeper.state === "watching" && keeper.namespaces === 2 ? true : undefined;
  });
  assert.doesNotMatch(instance.log, /stay when dns11 is killed/);
  await assertAnswered(OUR_TTL);
  instance.kill("SIGKILL");
  await waitFor("the rules to be gone", async () => (OURS.test(await rules()) ? undefined : true));
  await assertAnswered(DOCKERS_TTL);
});
