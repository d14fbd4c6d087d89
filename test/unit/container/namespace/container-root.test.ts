// Proves that of what a container has in the place of a file nothing but a file is ever opened: a pipe notices, and a
// device may do anything.

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

test("a file is read up to a length, also through links, which stay below the root", () => {
  writeFileSync(join(folder, "file"), "12345");
  symlinkSync("/file", join(folder, "link"));
  symlinkSync("/etc/passwd", join(folder, "out"));
  assert.equal(readUnder(root, "/file", 3)?.toString(), "123");
  assert.equal(readUnder(root, "/link", 9)?.toString(), "12345");
  assert.equal(readUnder(root, "/out", 9), undefined);
  assert.equal(readUnder(root, "/", 9), undefined);
});

test("whoever waits at a pipe for a reader still waits when it was looked at", async () => {
  const path = join(folder, "pipe");
  await check("mkfifo", [path]);
  // Let in by a reader that is gone again, it dies of its own writing.
  const writer = spawn("sh", ["-c", `echo waited > ${path}`], { stdio: "ignore" });
  const ended = new Promise((resolve) => writer.on("exit", resolve));
  await waitFor("somebody at the pipe", () => isWaiting(writer.pid));
  assert.equal(readUnder(root, "/pipe", 9), undefined);
  assert.equal(isWaiting(writer.pid), true);
  const text = await inTime(check("cat", [path]), "what it has to say");
  assert.equal(text, "waited\n");
  await ended;
});

/** A process that opens a pipe at which nobody reads. */
function isWaiting(pid: number | undefined): true | undefined {
  return readFileSync(`/proc/${pid}/wchan`, "utf8").includes("wait_for_partner") ? true : undefined;
}
