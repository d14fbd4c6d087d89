// Proves that only regular files of a container are ever opened: a pipe's writer would notice, and a device may do anything.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { readUnder } from "../../../../src/container/namespace/container-root.ts";
import { check } from "../../../support/program/command.ts";
import { inTime, waitFor } from "../../../support/rig/wait.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-root-"));
const root = openSync(folder, "r");
after(() => {
  closeSync(root);
  rmSync(folder, { recursive: true });
});

test("a file is read up to a maximum length, also through symlinks, which stay inside the root", () => {
  writeFileSync(join(folder, "file"), "12345");
  symlinkSync("/file", join(folder, "link"));
  symlinkSync("/etc/passwd", join(folder, "out"));
  assert.equal(readUnder(root, "/file", 3)?.toString(), "123");
  assert.equal(readUnder(root, "/link", 9)?.toString(), "12345");
  assert.equal(readUnder(root, "/out", 9), undefined);
  assert.equal(readUnder(root, "/", 9), undefined);
});

test("a process that waits for a pipe's reader still waits afterwards", async () => {
  const path = join(folder, "pipe");
  await check("mkfifo", [path]);
  // If a reader had come and gone, it would die of SIGPIPE.
  const writer = spawn("sh", ["-c", `echo waited > ${path}`], { stdio: "ignore" });
  const ended = new Promise((resolve) => writer.on("exit", resolve));
  await waitFor("a process at the pipe", () => isWaiting(writer.pid));
  assert.equal(readUnder(root, "/pipe", 9), undefined);
  assert.equal(isWaiting(writer.pid), true);
  const text = await inTime(check("cat", [path]), "its text");
  assert.equal(text, "waited\n");
  await ended;
});

/** Whether the process waits in open() for the pipe's reader. */
function isWaiting(pid: number | undefined): true | undefined {
  return readFileSync(`/proc/${pid}/wchan`, "utf8").includes("wait_for_partner") ? true : undefined;
}
