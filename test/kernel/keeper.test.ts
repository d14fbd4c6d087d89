/**
 * The keeper with a main process that really serves, in real namespaces and without an engine: whatever ends the main
 * process, the keeper takes its rules away; whatever ends the keeper, there is another one; and nobody else has a say.
 */
import assert from "node:assert/strict";
import { chmodSync, closeSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { LIMITS } from "../../src/base/limits.ts";
import { KEEPER_LIMITS } from "../../src/keeper/limits.ts";
import { Channel, channelPair, connectAt } from "../../src/kernel/channel.ts";
import { run } from "../support/program/command.ts";
import { Kept, heldBy, isAlive } from "../support/program/kept.ts";
import { Netns } from "../support/rig/netns.ts";
import { inTime, waitFor } from "../support/rig/wait.ts";

const CONNECTING = fileURLToPath(new URL("../support/program/connecting-main.js", import.meta.url));
const NAMESPACES = 4;
/** How often each side is killed; `make keeper` does it more often. */
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
  await new Promise((resolve) => setTimeout(resolve, KEEPER_LIMITS.silentMs * 2));
  process.kill(keeper, "SIGCONT");
  await new Promise((resolve) => setTimeout(resolve, KEEPER_LIMITS.silentMs));
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
});

test("nobody but root may connect, and whoever says what is no message is not listened to any more", async () => {
  await using kept = await Kept.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  const path = join(folder, "keeper.sock");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  chmodSync(folder, 0o755);
  const asNobody = ["--reuid=65534", "--regid=65534", "--clear-groups", process.execPath, CONNECTING, path];
  assert.match((await run("setpriv", asNobody)).stdout, /EACCES/);
  // What the folder's modes would let through, the keeper does not.
  chmodSync(path, 0o666);
  assert.equal((await run("setpriv", asNobody)).stdout, "nothing was said\n");
  assert.match((await run(process.execPath, [CONNECTING, path])).stdout, /^\{"is":"hello"/);
  const channels = Array.from({ length: 3 }, () => connectAt(path));
  for (const channel of channels) channel.send(Buffer.from("{"));
  for (const channel of channels) {
    await waitFor("the keeper to hang up", () => {
      for (;;) {
        const packet = channel.receive();
        if (packet === "end") return true;
        if (packet === "nothing") return undefined;
      }
    });
    channel.close();
  }
  // What is held is not for whoever says that it serves by it, nor for somebody who releases it.
  const impostor = connectAt(path);
  for (const message of [{ is: "hello", version: 1 }, { is: "taken" }, { is: "release", key: 1 }]) {
    impostor.send(Buffer.from(JSON.stringify(message)));
  }
  await waitFor("the keeper to hang up", () => {
    for (;;) {
      const packet = impostor.receive();
      if (packet === "end") return true;
      if (packet === "nothing") return undefined;
    }
  });
  impostor.close();
  assert.equal(await kept.keeperWith(NAMESPACES), keeper);
  assert.equal(heldBy(keeper), NAMESPACES * 3);
});

test("a message that is too long, or brings more than is taken, arrives nowhere and leaves no descriptor", () => {
  const [a, b] = channelPair();
  const [one, other] = [new Channel(a), new Channel(b)];
  const open = readdirSync("/proc/self/fd").length;
  assert.throws(() => one.send(Buffer.alloc(LIMITS.channelBytes + 1)), RangeError);
  const many = Array.from({ length: LIMITS.channelDescriptors }, () => 0);
  assert.throws(() => one.send(Buffer.from("x"), [...many, 0]), RangeError);
  assert.ok(one.send(Buffer.from("x"), many));
  const packet = other.receive();
  assert.ok(typeof packet === "object" && packet.descriptors.length === many.length);
  for (const fd of packet.descriptors) closeSync(fd);
  assert.equal(readdirSync("/proc/self/fd").length, open);
  assert.equal(other.receive(), "nothing");
  one.close();
  assert.equal(other.receive(), "end");
  assert.equal(other.send(Buffer.from("x")), false);
  other.close();
});
