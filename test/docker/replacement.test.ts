/**
 * Replacement: one dns11 takes over from another. No query is lost, neither of new sockets nor of a reused one, and if any of
 * the three processes is killed meanwhile, names are still answered. A chain of replacements leaves no descriptor open.
 */
import assert from "node:assert/strict";
import { closeSync, mkdirSync, mkdtempSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";

import { acceptAt, listenAt } from "../../src/kernel/channel.ts";
import { keeperPath } from "../../src/api/state-paths.ts";

import { type Container, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { Dns11, startDns11 } from "../support/program/dns11.ts";
import type { Engine } from "../support/engine/engine.ts";
import { startPair } from "../support/engine/pair.ts";
import { QueryLoop, failuresAfter } from "../support/client/query-loop.ts";
import { isAlive } from "../support/program/main-with-keeper.ts";
import { pause, waitFor } from "../support/rig/wait.ts";

/** Few enough that the sockets hold all of them for as long as a busy machine may take; each gap of 5 ms loses one. */
const PER_SECOND = 200;
const REUSED_PER_SECOND = 50;
/** How long the clients run before and after the takeover. */
const MARGIN_MS = 1_000;
/** At how many moments of a takeover each of the three processes is killed. */
const MOMENTS = Number(process.env["KEEPER_TIMES"] ?? 3);

let engine: Engine;
let web: Container;
let client: Container;

before(async () => ({ engine, web, client } = await startPair()));
after(async () => await engine[Symbol.asyncDispose]());

function successorOf({ stateDir }: Dns11): Dns11 {
  return new Dns11(engine.host, { stateDir, args: ["--replace"] });
}

async function untilServedBy(dns11: Dns11): Promise<void> {
  await waitFor("the new process to serve", async () => {
    if (!dns11.isRunning) throw new Error(`it ended: ${dns11.log}`);
    const status = await dns11.status().catch(() => undefined);
    return status?.pid === dns11.pid && status.isReady && status.keeper.state === "watching" ? true : undefined;
  });
}

async function ttl(): Promise<number | undefined> {
  return (await dig(client, "+time=1", "+tries=10", "web")).answer[0]?.ttl;
}

test("a takeover under load loses no query, and the old process exits on its own", async () => {
  await using first = await startDns11(engine);
  const keeper = (await first.status()).keeper.pid ?? assert.fail();
  await using fresh = await QueryLoop.start(client, { name: "web", perSecond: PER_SECOND });
  await using reused = await QueryLoop.start(client, { name: "web", perSecond: REUSED_PER_SECOND, sourcePort: "any" });
  await pause(MARGIN_MS);
  await using second = successorOf(first);
  await untilServedBy(second);
  assert.equal(await first.ended(), 0);
  await pause(MARGIN_MS);
  for (const loop of [fresh, reused]) {
    const ends = await loop.stop();
    assert.ok(ends.length > REUSED_PER_SECOND, "queries were sent");
    assert.deepEqual(failuresAfter(ends, 0), [], second.log);
  }
  const status = await second.status();
  assert.equal(status.keeper.pid, keeper, "the keeper stays the same");
  assert.deepEqual(
    status.containers.map(({ name, state }) => [name, state]),
    [
      ["client", "attached"],
      ["web", "attached"],
    ],
  );
  assert.ok((status.containers[0]?.counters?.["local"] ?? 0) > 0, "the new process answered queries");
  assert.deepEqual(dataOf(await dig(client, "+tcp", "web")), [web.address("n1")]);
  // One that stands still is killed and replaced, although the new process did not start it.
  process.kill(keeper, "SIGSTOP");
  await waitFor("another keeper", async () => {
    const { state, pid } = (await second.status()).keeper;
    return state === "watching" && pid !== keeper ? true : undefined;
  });
  assert.ok(!isAlive(keeper), "the old keeper is gone");
  assert.equal(await ttl(), 5);
  // The keeper watches the new process, too.
  second.kill("SIGKILL");
  await waitFor("Docker's answer", async () => ((await ttl()) === 600 ? true : undefined));
  assert.doesNotMatch((await client.enter("nft", ["list", "tables"])).stdout, /dns11/);
});

test("--replace without a running instance is a normal start; a successor that serves fewer containers hands the others back", async () => {
  await using served = await runContainer(engine, { name: "served", networks: ["n1"], args: ["--label", "served"] });
  await using first = await startDns11(engine, { args: ["--replace"] });
  assert.equal(await ttl(), 5);
  await using second = new Dns11(engine.host, {
    stateDir: first.stateDir,
    args: ["--replace", "--only", "label=served"],
  });
  await untilServedBy(second);
  await second.logs(/took over from the previous process/);
  assert.equal((await dig(served, "web")).answer[0]?.ttl, 5);
  assert.equal((await dig(web, "client")).answer[0]?.ttl, 600);
  assert.doesNotMatch((await web.enter("nft", ["list", "tables"])).stdout, /dns11/);
  assert.equal(await second.stop(), 0);
  assert.equal((await dig(served, "web")).answer[0]?.ttl, 600);
});

test("an old process with another protocol version is stopped, hands back, and then the new process starts", async () => {
  await using first = await startDns11(engine, { settings: { keeper: "off" } });
  const [instance = ""] = readdirSync(first.stateDir);
  const path = keeperPath(join(first.stateDir, instance));
  mkdirSync(dirname(path));
  // A keeper of a later version: it sends the PID of its main process, and understands no message.
  const listener = listenAt(path);
  await using second = successorOf(first);
  const channel = await waitFor("the new process to connect", () => acceptAt(listener));
  channel.send(Buffer.from(JSON.stringify({ is: "hello", version: 99, keeper: 1, main: first.pid })));
  assert.equal(await first.ended(), 0, "it was stopped by a signal");
  for (let packet = channel.receive(); packet !== "end"; packet = channel.receive()) {
    if (packet !== "nothing") assert.match(packet.bytes.toString(), /"hello"/, "no other message was sent");
    await pause(1);
  }
  channel.close();
  closeSync(listener);
  await untilServedBy(second);
  assert.equal(await ttl(), 5);
});

// A descriptor that a takeover leaves open goes to the next process, too, so it is seen after some rounds: only with `make keeper`.
const skip = process.env["KEEPER_TIMES"] === undefined;
test(
  `replaced ${MOMENTS} times in a row: later processes have as many descriptors as the first ones`,
  { skip },
  async () => {
    await using first = await startDns11(engine);
    const descriptors: number[] = [];
    let current = first;
    try {
      for (let time = 0; time < MOMENTS; time++) {
        const next = successorOf(first);
        const previous = current;
        current = next;
        await untilServedBy(next);
        assert.equal(await previous.ended(), 0, next.log);
        assert.equal(await ttl(), 5);
        descriptors.push(readdirSync(`/proc/${next.pid}/fd`).length);
      }
    } finally {
      if (current !== first) await current[Symbol.asyncDispose]();
    }
    const [least, most] = [Math.min(...descriptors), Math.max(...descriptors)];
    assert.ok(most - least < 8, `between ${least} and ${most} descriptors: ${descriptors.join(" ")}`);
  },
);

for (const [victim, end] of [
  ["the new process", "SIGKILL"],
  ["the old process", "SIGKILL"],
  ["the keeper", "SIGTERM"],
] as const) {
  test(`${victim} is killed at ${MOMENTS} moments of a takeover: queries are answered, and nothing is left`, async () => {
    const stateDir = mkdtempSync(join(engine.folder, "s"));
    const all: Dns11[] = [];
    let first: Dns11 | undefined;
    try {
      for (let moment = 0; moment < MOMENTS; moment++) {
        if (first === undefined) all.push((first = await startDns11(engine, { stateDir })));
        const second = successorOf(first);
        all.push(second);
        first = await killedDuringTakeover(first, second, victim, moment * 4);
        if (first === undefined || moment % 3 < 2) continue;
        await assertEnds(first, end);
        first = undefined;
      }
    } catch (error) {
      throw new Error([error, ...all.map(({ log }) => log)].join("\n---\n"), { cause: error });
    } finally {
      for (const each of all) each.kill("SIGKILL");
      for (const each of all) await each[Symbol.asyncDispose]();
    }
  });
}

/** Kills one of the three, that long after the takeover began. Returns the process that serves afterwards, with a keeper. */
async function killedDuringTakeover(
  first: Dns11,
  second: Dns11,
  victim: string,
  ms: number,
): Promise<Dns11 | undefined> {
  // While a takeover that has just failed is undone, there is no control socket.
  const keeper = await keeperOf(first);
  await waitFor(
    "the takeover to begin",
    () => {
      if (!second.isRunning) throw new Error("the new process ended");
      return second.log.includes("loaded the running containers") ? true : undefined;
    },
    { everyMs: 1 },
  );
  await pause(ms);
  if (victim === "the new process") second.kill("SIGKILL");
  else if (victim === "the old process") first.kill("SIGKILL");
  else process.kill(keeper, "SIGKILL");
  const where = `killed ${ms} ms after the takeover began`;
  assert.deepEqual(dataOf(await dig(client, "+time=1", "+tries=10", "web")), [web.address("n1")], where);
  const { left } = await waitFor(
    `one process to serve, or none, ${where}`,
    async () => await servingAlone(first, second),
  );
  assert.equal(await ttl(), left === undefined ? 600 : 5, where);
  if (left === undefined) await assertNothingLeft(keeper);
  return left;
}

/** The one before may just have been killed. */
async function keeperOf(instance: Dns11): Promise<number> {
  return await waitFor("its keeper", async () => {
    const { state, pid } = (await instance.status().catch(() => undefined))?.keeper ?? {};
    return state === "watching" && pid != null && isAlive(pid) ? pid : undefined;
  });
}

/** None is left if the new process gave up and the old process was killed. */
async function servingAlone(...both: readonly Dns11[]): Promise<{ readonly left: Dns11 | undefined } | undefined> {
  const [one, other] = both.filter(({ isRunning }) => isRunning);
  if (other !== undefined) return undefined;
  if (one === undefined) return { left: undefined };
  const status = await one.status().catch(() => undefined);
  const isServing = status?.isReady === true && status.keeper.state === "watching" && status.pid === one.pid;
  return isServing ? { left: one } : undefined;
}

/** The containers are watched as before, so the end of the process hands them back. */
async function assertEnds(last: Dns11, signal: NodeJS.Signals): Promise<void> {
  const keeper = await keeperOf(last);
  last.kill(signal);
  if (signal === "SIGTERM") assert.equal(await last.ended(), 0);
  await assertNothingLeft(keeper);
}

async function assertNothingLeft(keeper: number): Promise<void> {
  await waitFor("Docker's answer", async () => ((await ttl()) === 600 ? true : undefined));
  assert.doesNotMatch((await client.enter("nft", ["list", "tables"])).stdout, /dns11/);
  await waitFor("the keeper to end", () => (isAlive(keeper) ? undefined : true));
}
