// Tests that a node's resolv.conf is written in place: the same file, seen through the container's mount, and never without a
// nameserver for a concurrent reader. With real files, mounts and readers.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";

import { ResolvConfFile, isMountedIn, intermediateTexts } from "../../../../src/container/files/resolv-conf-file.ts";
import { openInRoot } from "../../../../src/kernel/libc.ts";
import { Fault, codeOf, reasonOf } from "../../../../src/base/lib/fault.ts";
import { check } from "../../../support/program/command.ts";
import { inTime, pause, waitFor } from "../../../support/rig/wait.ts";
import { MachineRoot } from "../../support/machine-root.ts";
import { NEEDS_ROOT } from "../../support/needs-root.ts";
import { NodeMount } from "../../support/node-mount.ts";
import type { PollReport } from "../../support/poll-main.ts";

const PATH = "/containers/c/resolv.conf";
const DOCKER = "nameserver 127.0.0.11\noptions ndots:0\n";
const LONG = `search a.rather.long.example corp.example\n${"# comment\n".repeat(30)}nameserver 172.18.0.1\n`;
const SHORT = "nameserver 10.0.0.1";

function machineOf(t: TestContext, text = DOCKER): MachineRoot {
  const machine = new MachineRoot({ [PATH]: text });
  t.after(() => machine[Symbol.dispose]());
  return machine;
}

function fileOf(t: TestContext, { root }: { readonly root: number }, path = PATH): ResolvConfFile {
  const file = new ResolvConfFile((flags) => openInRoot(root, path, flags));
  t.after(() => file.close());
  return file;
}

async function withPoll(path: string, act: () => void): Promise<PollReport> {
  const program = fileURLToPath(new URL("../../support/poll-main.js", import.meta.url));
  const child = spawn(process.execPath, [program, path], { stdio: ["pipe", "pipe", "inherit"] });
  try {
    const [ready] = (await inTime(once(child.stdout, "data"), "the reader")) as [Buffer];
    assert.equal(ready.toString(), "ready\n");
    act();
    child.stdin.end();
    const [report] = (await inTime(once(child.stdout, "data"), "the report")) as [Buffer];
    return JSON.parse(report.toString()) as PollReport;
  } finally {
    child.kill("SIGKILL");
  }
}

function isReadOnly(why: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof Fault);
    assert.equal(codeOf(error), "RESOLV_CONF_READ_ONLY");
    assert.ok(error.remedy !== undefined);
    assert.match(reasonOf(error), why);
    return true;
  };
}

for (const [what, text] of [
  ["longer", LONG],
  ["shorter", SHORT],
  ["as long", DOCKER.replace("127.0.0.11", "172.18.0.1")],
  ["without a server", "# none\n"],
  ["empty", ""],
  ["no text", "# \x00\xff\xc3\x28\nnameserver 10.0.0.1\n"],
] as const) {
  test(`the text is written into the same file: ${what}`, (t) => {
    const machine = machineOf(t);
    const file = fileOf(t, machine);
    const before = statSync(machine.at(PATH));
    assert.equal(file.write(text), true);
    const after = statSync(machine.at(PATH));
    assert.deepEqual([after.ino, after.mode, after.uid], [before.ino, before.mode, before.uid]);
    assert.equal(readFileSync(machine.at(PATH), "latin1"), text);
    assert.equal(file.read(), text);
    file.write(DOCKER);
    assert.equal(readFileSync(machine.at(PATH), "latin1"), DOCKER);
  });
}

test("a reader during 300 rewrites always finds a nameserver", async (t) => {
  const machine = machineOf(t);
  const file = fileOf(t, machine);
  const { ino } = statSync(machine.at(PATH));
  const texts = [LONG, SHORT, DOCKER, SHORT, LONG, DOCKER];
  const { reads, withoutServer } = await withPoll(machine.at(PATH), () => {
    for (let count = 0; count < 300; count++) file.write(texts[count % texts.length] ?? "");
  });
  t.diagnostic(`${reads} reads`);
  assert.ok(reads >= 300);
  assert.deepEqual(withoutServer, []);
  assert.equal(statSync(machine.at(PATH)).ino, ino);
});

test("a file that another program writes at the same time is left to it", async (t) => {
  const machine = machineOf(t);
  const file = fileOf(t, machine);
  const theirs = "nameserver 10.89.0.1\n";
  const script = `while test -e "$1"; do echo "${theirs.trim()}" > "$1"; done`;
  const other = spawn("sh", ["-c", script, "sh", machine.at(PATH)], { stdio: "ignore" });
  const gone = once(other, "exit");
  await waitFor("the other one", () => (file.read() === theirs ? true : undefined));
  const yielded = Array.from({ length: 200 }, () => file.write(LONG)).filter((isWritten) => !isWritten);
  other.kill("SIGKILL");
  await gone;
  assert.ok(yielded.length > 0);
});

test("a text left by a killed write has a nameserver, and starts like one of both texts", () => {
  for (const [from, to] of [
    [DOCKER, LONG],
    [LONG, DOCKER],
    [SHORT, LONG],
    [LONG, SHORT],
  ] as const) {
    const [extended = "", overwritten = ""] = intermediateTexts(from, to);
    const added = `\nnameserver ${/nameserver (\S+)/.exec(from)?.[1]}\n`;
    assert.ok(extended.startsWith(from) && extended.endsWith(added));
    assert.ok(overwritten.startsWith(to) && overwritten.endsWith(added));
    assert.equal(overwritten.length, extended.length);
  }
});

test("the container sees the text through its mount, and the mount stays", NEEDS_ROOT, async (t) => {
  const machine = machineOf(t);
  await using node = await NodeMount.create(machine.at(PATH));
  const mounts = await node.sh("grep resolv.conf /proc/self/mountinfo");
  assert.match(mounts, /etc\/resolv\.conf/);
  fileOf(t, machine).write(LONG);
  assert.equal(await node.sh("cat etc/resolv.conf"), LONG);
  assert.equal(await node.sh("grep resolv.conf /proc/self/mountinfo"), mounts);
});

test("writes of the container, in place as a shell does, are noticed and read", NEEDS_ROOT, async (t) => {
  const machine = machineOf(t);
  await using node = await NodeMount.create(machine.at(PATH));
  const file = fileOf(t, machine);
  let events = 0;
  file.watch(() => events++);
  await node.sh("echo nameserver 172.18.0.1 > etc/resolv.conf");
  await waitFor("the event", () => (events > 0 ? true : undefined));
  assert.equal(file.read(), "nameserver 172.18.0.1\n");
  file.close();
  await pause(20);
  events = 0;
  await node.sh("echo '# more' >> etc/resolv.conf");
  await pause(50);
  assert.equal(events, 0);
});

test("a container with the engine's file is distinguished from one with another file", NEEDS_ROOT, async (t) => {
  const machine = machineOf(t);
  machine.write("/volume/resolv.conf", DOCKER);
  const engineFile = openInRoot(machine.root, PATH, constants.O_RDONLY);
  t.after(() => closeSync(engineFile));
  await using node = await NodeMount.create(machine.at(PATH));
  await using other = await NodeMount.create(machine.at("/volume/resolv.conf"));
  assert.equal(isMountedIn(engineFile, node.root), true);
  assert.equal(isMountedIn(engineFile, other.root), false);
  await node.sh("umount etc/resolv.conf && rm etc/resolv.conf");
  assert.equal(isMountedIn(engineFile, node.root), false);
  // A symbolic link is resolved inside the container's root.
  await node.sh("ln -s /etc/passwd etc/resolv.conf");
  assert.equal(isMountedIn(openedForGood(t, "/etc/passwd"), node.root), false);
});

function openedForGood(t: TestContext, path: string): number {
  const fd = openSync(path, "r");
  t.after(() => closeSync(fd));
  return fd;
}

test("a file on a read-only mount can be read but not written", NEEDS_ROOT, async (t) => {
  const machine = machineOf(t);
  await using node = await NodeMount.create(machine.at(PATH), "ro");
  const file = fileOf(t, node, "/etc/resolv.conf");
  assert.equal(file.read(), DOCKER);
  assert.throws(() => file.assertWritable(), isReadOnly(/EROFS/));
  assert.throws(() => file.write(LONG), isReadOnly(/EROFS/));
  assert.equal(file.read(), DOCKER);
  // The engine's own path to the file is another mount.
  fileOf(t, machine).assertWritable();
});

for (const [what, make, why] of [
  ["nothing", () => undefined, /ENOENT/],
  ["a folder", (path: string) => mkdirSync(path), /not a regular file/],
  ["a pipe, which would keep us waiting", (path: string) => check("mkfifo", [path]), /not a regular file/],
  ["a device", (path: string) => check("mknod", [path, "c", "1", "3"]), /not a regular file/],
] as const) {
  test(`there is ${what}`, what === "a device" ? NEEDS_ROOT : {}, async (t) => {
    const machine = machineOf(t);
    rmSync(machine.at(PATH));
    await make(machine.at(PATH));
    const file = fileOf(t, machine);
    assert.equal(file.read(), undefined);
    assert.equal(file.quietMs(), 0);
    assert.throws(() => file.assertWritable(), isReadOnly(why));
    assert.throws(() => file.write(LONG), isReadOnly(why));
    file.watch(() => assert.fail("no process wrote"));
  });
}

test("a file too long for a resolv.conf is not read", (t) => {
  const machine = machineOf(t, "#".repeat(64 * 1024));
  const file = fileOf(t, machine);
  assert.equal(file.read()?.length, 64 * 1024);
  appendFileSync(machine.at(PATH), "#");
  assert.equal(file.read(), undefined);
  assert.throws(() => file.write(LONG), isReadOnly(/too long/));
  assert.equal(statSync(machine.at(PATH)).size, 64 * 1024 + 1);
});

test("the time since the last write", (t) => {
  const machine = machineOf(t);
  const file = fileOf(t, machine);
  assert.ok(file.quietMs() < 60_000);
  const anHourAgo = Date.now() / 1000 - 3_600;
  utimesSync(machine.at(PATH), anHourAgo, anHourAgo);
  assert.ok(Math.abs(file.quietMs() - 3_600_000) < 60_000);
});

test("no descriptor stays open", (t) => {
  const machine = machineOf(t);
  const file = fileOf(t, machine);
  // The first watch creates the event loop's inotify descriptor.
  file.watch(() => {});
  file.close();
  const before = openSync("/dev/null", "r");
  closeSync(before);
  for (let count = 0; count < 20; count++) {
    file.read();
    file.write(count % 2 === 0 ? LONG : DOCKER);
    file.watch(() => {});
    file.close();
    file.quietMs();
  }
  const after = openSync("/dev/null", "r");
  closeSync(after);
  assert.equal(after, before);
});
