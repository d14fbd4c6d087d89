/**
 * The keeper with a main process that serves real namespaces, without an engine: whatever ends the main process, the keeper
 * removes its rules; whatever ends the keeper, it is restarted; and other processes cannot interfere.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, closeSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { LIMITS } from "../../src/base/limits.ts";
import type { KeeperReport } from "../../src/base/model/keeper-report.ts";
import { KEEPER_LIMITS } from "../../src/keeper/limits.ts";
import { Channel, channelPair, connectAt } from "../../src/kernel/channel.ts";
import { run } from "../support/program/command.ts";
import { PublicCopy } from "../support/program/public-copy.ts";
import { MainWithKeeper, SOCKETS_HELD, socketsHeldBy, isAlive } from "../support/program/main-with-keeper.ts";
import { Netns } from "../support/rig/netns.ts";
import { textOf } from "../support/rig/text-of.ts";
import { inTime, pause, waitFor } from "../support/rig/wait.ts";

const CONNECTING = fileURLToPath(new URL("../support/program/connecting-main.js", import.meta.url));
const TAKING = fileURLToPath(new URL("../support/program/taking-main.js", import.meta.url));
const NAMESPACES = 4;
/** How often the main process reports, and how long its keeper may be silent. */
const REPORT_MS = 50;
const SECOND_MS = 1_000;
/** How often each process is killed; more often with `make keeper`. */
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

function isTraced(pid: number): boolean {
  return /^TracerPid:\s+[1-9]/m.test(textOf(`/proc/${pid}/status`));
}

test("main process killed: the keeper removes every table and exits", async () => {
  const kept = await MainWithKeeper.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  assert.equal(await tables(), NAMESPACES);
  kept.kill("SIGKILL");
  await inTime(kept.exited, "its end");
  await untilTables(0);
  await untilGone(keeper);
});

test("the kernel closes the keeper's connection before anything of a container, as it closes the highest descriptor first", async () => {
  await using kept = await MainWithKeeper.start({ folder, paths });
  await kept.keeperWith(NAMESPACES);
  const highest = Math.max(...readdirSync(`/proc/${kept.pid}/fd`).map(Number));
  const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${kept.pid}/fd/${highest}`))?.[1];
  // Between the two processes messages are packets.
  const packets = readFileSync("/proc/net/unix", "utf8").match(/^.*: \S+ \S+ \S+ 0005 .*$/gm) ?? [];
  assert.ok(packets.some((line) => line.trimEnd().split(/ +/)[6] === inode));
});

test("without the keeper's copies the tables stay: it is the keeper that removes them", async () => {
  const kept = await MainWithKeeper.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  process.kill(keeper, "SIGSTOP");
  kept.kill("SIGKILL");
  await inTime(kept.exited, "its end");
  assert.equal(await tables(), NAMESPACES);
  process.kill(keeper, "SIGCONT");
  await untilTables(0);
  await untilGone(keeper);
});

test("main process hung: the keeper kills it and removes every table", async () => {
  const kept = await MainWithKeeper.start({ folder, paths });
  kept.kill("SIGUSR2");
  assert.equal(await inTime(kept.exited, "its end"), "SIGKILL");
  await untilTables(0);
});

test("a main process that is stopped by a signal counts as hung", async () => {
  const kept = await MainWithKeeper.start({ folder, paths });
  kept.kill("SIGSTOP");
  assert.equal(await inTime(kept.exited, "its end"), "SIGKILL");
  await untilTables(0);
});

test("a main process under a debugger is not killed", async () => {
  await using kept = await MainWithKeeper.start({ folder, paths });
  const strace = spawn("strace", ["-qq", "-e", "trace=none", "-p", String(kept.pid)], { stdio: "ignore" });
  const ended = once(strace, "close");
  try {
    await waitFor("strace", () => (isTraced(kept.pid) ? true : undefined));
    kept.kill("SIGUSR2");
    // Twice as long as it may hang.
    await pause(KEEPER_LIMITS.silentMs * 2);
    assert.ok(isTraced(kept.pid), "it was not killed");
  } finally {
    strace.kill("SIGINT");
    await ended;
  }
  assert.equal(await inTime(kept.exited, "its end after the debugger has detached"), "SIGKILL");
  await untilTables(0);
});

test("two processes that were stopped for long do not mistake that for a hang of the other one", async () => {
  await using kept = await MainWithKeeper.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  const both = [kept.pid, keeper];
  for (const pid of both) process.kill(pid, "SIGSTOP");
  await pause(KEEPER_LIMITS.silentMs * 2);
  for (const pid of both) process.kill(pid, "SIGCONT");
  await pause(KEEPER_LIMITS.silentMs);
  assert.equal(await kept.keeperWith(NAMESPACES), keeper);
  assert.equal(await tables(), NAMESPACES);
});

test("a keeper that is stopped is replaced within a second of the main process's own time", async () => {
  await using kept = await MainWithKeeper.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  process.kill(keeper, "SIGSTOP");
  const reported = kept.lines.length;
  await kept.keeperWith(NAMESPACES, keeper);
  // One for each round of its timers, so a busy machine makes no difference.
  const silent = kept.lines
    .slice(reported)
    .filter((line) => (line["keeper"] as KeeperReport | undefined)?.pid === keeper);
  assert.ok(silent.length * REPORT_MS <= SECOND_MS + KEEPER_LIMITS.beatMs, `${silent.length} reports`);
});

test("a keeper that stops answering is replaced", async () => {
  await using kept = await MainWithKeeper.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  process.kill(keeper, "SIGSTOP");
  const next = await kept.keeperWith(NAMESPACES, keeper);
  await untilGone(keeper);
  assert.equal(await tables(), NAMESPACES);
  kept.kill("SIGKILL");
  await untilTables(0);
  await untilGone(next);
});

test(`the keeper is killed ${TIMES} times: it is restarted, and nothing is lost or left behind`, async () => {
  await using kept = await MainWithKeeper.start({ folder, paths });
  const descriptors = readdirSync(`/proc/${kept.pid}/fd`).length;
  let keeper = await kept.keeperWith(NAMESPACES);
  for (let time = 0; time < TIMES; time++) {
    process.kill(keeper, "SIGKILL");
    keeper = await kept.keeperWith(NAMESPACES, keeper);
  }
  assert.equal(await tables(), NAMESPACES);
  await waitFor("as few descriptors as before", () =>
    readdirSync(`/proc/${kept.pid}/fd`).length <= descriptors ? true : undefined,
  );
  // One that is silent on a busy machine is replaced, too.
  assert.ok((kept.report?.restarts ?? 0) >= TIMES);
  kept.kill("SIGKILL");
  await untilTables(0);
});

test(`the main process is killed ${TIMES} times while it attaches and detaches: no table and no process is left`, async () => {
  for (let time = 0; time < TIMES; time++) {
    const kept = await MainWithKeeper.start({ folder, paths });
    const keeper = await kept.keeperWith(NAMESPACES);
    for (const path of paths.slice(time % NAMESPACES)) kept.toggle(path);
    await pause(time % 7);
    kept.kill("SIGKILL");
    await inTime(kept.exited, "its end");
    await untilTables(0);
    await untilGone(keeper);
  }
});

test("a detached namespace is released by the keeper, and one that is attached again is held again", async () => {
  await using kept = await MainWithKeeper.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  const [first = ""] = paths;
  kept.toggle(first);
  await untilTables(NAMESPACES - 1);
  await waitFor("its copies to be closed", () =>
    socketsHeldBy(keeper) === (NAMESPACES - 1) * SOCKETS_HELD ? true : undefined,
  );
  kept.toggle(first);
  await untilTables(NAMESPACES);
  await waitFor("its copies to be there", () =>
    socketsHeldBy(keeper) === NAMESPACES * SOCKETS_HELD ? true : undefined,
  );
});

test("the keeper has few privileges in all of its threads, and only root can use its socket", async () => {
  await using kept = await MainWithKeeper.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  for (const thread of readdirSync(`/proc/${keeper}/task`)) {
    const status = readFileSync(`/proc/${keeper}/task/${thread}/status`, "utf8");
    assert.match(status, /^Seccomp:\s+2$/m, `thread ${thread}`);
    assert.match(status, /^NoNewPrivs:\s+1$/m, `thread ${thread}`);
    // CAP_NET_ADMIN and CAP_SYS_PTRACE, where a test's programs run.
    if (Number(thread) === keeper) assert.match(status, /^CapEff:\s+0000000000081000$/m);
  }
});

test("only root may connect, and a client with an invalid message is disconnected", async () => {
  await using kept = await MainWithKeeper.start({ folder, paths });
  const keeper = await kept.keeperWith(NAMESPACES);
  const path = join(folder, "keeper.sock");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  chmodSync(folder, 0o755);
  const copy = await PublicCopy.get();
  const connecting = [copy.node, copy.pathOf(CONNECTING), path];
  const unprivileged = ["--reuid=65534", "--regid=65534", "--clear-groups", ...connecting];
  assert.match((await run("setpriv", unprivileged)).stdout, /EACCES/);
  // The keeper refuses it even if the folder's mode allows it.
  chmodSync(path, 0o666);
  assert.equal((await run("setpriv", unprivileged)).stdout, "no message\n");
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
  // Another client can neither take over nor release what is held.
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
  assert.equal(socketsHeldBy(keeper), NAMESPACES * SOCKETS_HELD);
});

test("a process in another mount or PID namespace cannot take over, and has nobody pause", async () => {
  await using kept = await MainWithKeeper.start({ folder, paths });
  await kept.keeperWith(NAMESPACES);
  const path = join(folder, "keeper.sock");
  for (const [options, reason] of [
    [["--mount"], "it is in another mount namespace"],
    [["--pid", "--fork", "--mount-proc"], "it is in another PID namespace"],
  ] as const) {
    const { stdout } = await run("unshare", [...options, process.execPath, TAKING, path]);
    assert.match(stdout, new RegExp(reason));
  }
  assert.equal(
    kept.lines.some((line) => "requested" in line),
    false,
  );
});

test("a message that is too long, empty or has too many descriptors is dropped and leaves no descriptor open", () => {
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
  // It counts as the end.
  assert.ok(one.send(Buffer.alloc(0), many));
  assert.equal(other.receive(), "end");
  assert.equal(readdirSync("/proc/self/fd").length, open);
  one.close();
  assert.equal(other.receive(), "end");
  assert.equal(other.send(Buffer.from("x")), false);
  other.close();
});
