/**
 * The keeper with a main process that really serves, in real namespaces and without an engine: whatever ends the main
 * process, the keeper takes its rules away; whatever ends the keeper, there is another one; and nobody else has a say.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { LIMITS } from "../../src/config/limits.ts";
import { run } from "../support/program/command.ts";
import { Kept, heldBy, isAlive } from "../support/program/kept.ts";
import { Netns } from "../support/rig/netns.ts";
import { inTime, waitFor } from "../support/rig/wait.ts";

const NAMESPACES = 4;
/** How often each side is killed; --times=200 is what a release is tried with. */
const TIMES = Number(process.env["KEEPER_TIMES"] ?? 5);

let folder: string;
let namespaces: Netns[];
let paths: string[];

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "d11-keeper-"));
  namespaces = await Promise.all(Array.from({ length: NAMESPACES }, async () => await Netns.create()));
  paths = namespaces.map(({ netnsPath }) => netnsPath);
});
after(async () => {
  for (const netns of namespaces) await netns[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function tables(): Promise<number> {
  const listed = await Promise.all(namespaces.map(async (netns) => await netns.enter("nft", ["list", "tables"])));
  return listed.filter(({ stdout }) => stdout.includes("dns11")).length;
}

async function untilTables(count: number): Promise<void> {
  await waitFor(`${count} tables`, async () => ((await tables()) === count ? true : undefined));
}

async function untilGone(pid: number): Promise<void> {
  await waitFor(`process ${pid} to be gone`, () => (isAlive(pid) ? undefined : true));
}

test("killed: the keeper removes every table, and then it is gone, too", async () => {
  const kept = await Kept.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  assert.equal(await tables(), NAMESPACES);
  kept.kill("SIGKILL");
  await inTime(kept.exited, "its end");
  await untilTables(0);
  await untilGone(keeper);
});

test("without a keeper's copies the tables would have stayed: it is the keeper that removes them", async () => {
  const kept = await Kept.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  process.kill(keeper, "SIGSTOP");
  kept.kill("SIGKILL");
  await inTime(kept.exited, "its end");
  assert.equal(await tables(), NAMESPACES);
  process.kill(keeper, "SIGCONT");
  await untilTables(0);
  await untilGone(keeper);
});

test("hung: the keeper ends it and removes every table", async () => {
  const kept = await Kept.start({ folder, paths });
  kept.kill("SIGUSR2");
  assert.equal(await inTime(kept.exited, "its end"), "SIGKILL");
  await untilTables(0);
});

test("stopped by a signal is as good as hung", async () => {
  const kept = await Kept.start({ folder, paths });
  kept.kill("SIGSTOP");
  assert.equal(await inTime(kept.exited, "its end"), "SIGKILL");
  await untilTables(0);
});

test("looked into by a debugger it may be silent as long as that takes", async () => {
  await using kept = await Kept.start({ folder, paths });
  const seen = run("timeout", ["3", "strace", "-qq", "-e", "trace=none", "-p", String(kept.pid)]);
  await waitFor("strace", () =>
    /^TracerPid:\s+[1-9]/m.test(readFileSync(`/proc/${kept.pid}/status`, "utf8")) ? true : undefined,
  );
  kept.kill("SIGUSR2");
  await seen;
  // It has had three times as long, and is ended once nobody looks any more.
  assert.equal(await inTime(kept.exited, "its end"), "SIGKILL");
  await untilTables(0);
});

test("a keeper that was stopped for long does not take that for the main process's silence", async () => {
  await using kept = await Kept.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  process.kill(keeper, "SIGSTOP");
  await new Promise((resolve) => setTimeout(resolve, LIMITS.keeperSilentMs * 2));
  process.kill(keeper, "SIGCONT");
  await new Promise((resolve) => setTimeout(resolve, LIMITS.keeperSilentMs));
  assert.equal(await kept.keeperWith(NAMESPACES), keeper);
  assert.equal(await tables(), NAMESPACES);
});

test("a keeper that does not answer any more is replaced", async () => {
  await using kept = await Kept.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  process.kill(keeper, "SIGSTOP");
  const next = await kept.keeperWith(NAMESPACES, keeper);
  await untilGone(keeper);
  assert.equal(await tables(), NAMESPACES);
  kept.kill("SIGKILL");
  await untilTables(0);
  await untilGone(next);
});

test(`the keeper is killed ${TIMES} times: there is another one, and nothing is lost or left`, async () => {
  await using kept = await Kept.start({ folder, paths });
  const descriptors = readdirSync(`/proc/${kept.pid}/fd`).length;
  let keeper = await kept.keeperWith(NAMESPACES);
  for (let time = 0; time < TIMES; time++) {
    process.kill(keeper, "SIGKILL");
    keeper = await kept.keeperWith(NAMESPACES, keeper);
  }
  assert.equal(await tables(), NAMESPACES);
  assert.equal(readdirSync(`/proc/${kept.pid}/fd`).length, descriptors);
  assert.equal(kept.report?.restarts, TIMES);
  kept.kill("SIGKILL");
  await untilTables(0);
});

test(`the main process is killed ${TIMES} times while it attaches and leaves: no table, no process is left`, async () => {
  for (let time = 0; time < TIMES; time++) {
    const kept = await Kept.start({ folder, paths });
    const keeper = await kept.keeperWith(NAMESPACES);
    for (const path of paths.slice(time % NAMESPACES)) kept.turn(path);
    await new Promise((resolve) => setTimeout(resolve, time % 7));
    kept.kill("SIGKILL");
    await inTime(kept.exited, "its end");
    await untilTables(0);
    await untilGone(keeper);
  }
});

test("what is left is let go of, and what is attached anew is held anew", async () => {
  await using kept = await Kept.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  const [first = ""] = paths;
  kept.turn(first);
  await untilTables(NAMESPACES - 1);
  await waitFor("its copies to be closed", () => (heldBy(keeper) === (NAMESPACES - 1) * 3 ? true : undefined));
  kept.turn(first);
  await untilTables(NAMESPACES);
  await waitFor("its copies to be there", () => (heldBy(keeper) === NAMESPACES * 3 ? true : undefined));
});

test("a keeper can do little, in any of its threads, and its socket is for root alone", async () => {
  await using kept = await Kept.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  for (const thread of readdirSync(`/proc/${keeper}/task`)) {
    const status = readFileSync(`/proc/${keeper}/task/${thread}/status`, "utf8");
    assert.match(status, /^Seccomp:\s+2$/m, `thread ${thread}`);
    assert.match(status, /^NoNewPrivs:\s+1$/m, `thread ${thread}`);
    // CAP_NET_ADMIN alone, where programs of ours run.
    if (Number(thread) === keeper) assert.match(status, /^CapEff:\s+0000000000001000$/m);
  }
  const path = join(folder, "keeper.sock");
  assert.equal(statSync(path).mode & 0o777, 0o600);
});
