// Proves what the next process learns about a crash, with real processes that are killed at work.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { CrashRecorder } from "../../../../src/run/quarantine/crash-recorder.ts";

const CRASH_RECORDER = new URL("../../../../src/run/quarantine/crash-recorder.js", import.meta.url).href;
const GUARD = new URL("../../../../src/base/lib/guard.js", import.meta.url).href;
const ID = "c".repeat(64);

const parent = mkdtempSync(join(tmpdir(), "d11-recorder-"));
after(() => rmSync(parent, { recursive: true }));
let folders = 0;

function newFolder(): string {
  return mkdtempSync(join(parent, `${folders++}-`));
}

// A process that opens the recorder, assigns client 5000 to a container, and runs `ending`.
function runProcess(folder: string, ending: string): number | NodeJS.Signals | null {
  const program = `
    import { CrashRecorder } from "${CRASH_RECORDER}";
    import { guard } from "${GUARD}";
    const recorder = CrashRecorder.open(${JSON.stringify(folder)});
    guard.install(() => undefined, recorder.currentClient);
    recorder.setContainer(5000, "${ID}");
    const die = () => process.kill(process.pid, "SIGKILL");
    ${ending}`;
  const { status, signal } = spawnSync(process.execPath, ["--input-type=module", "--eval", program]);
  return status ?? signal;
}

for (const [what, ending, end, context] of [
  ["it answers", "guard.run('udp', 5000, die);", "SIGKILL", { doing: "answering", containerId: ID }],
  [
    "it answers one client from within another client's work",
    "guard.run('udp', 1, () => { guard.run('upstream', 5000, die); });",
    "SIGKILL",
    { doing: "answering", containerId: ID },
  ],
  ["it inspects", `recorder.inspecting("${ID}", die);`, "SIGKILL", { doing: "inspecting", containerId: ID }],
  ["it attaches", `recorder.attaching("${ID}", die);`, "SIGKILL", { doing: "attaching", containerId: ID }],
  ["it is idle", "guard.run('udp', 5000, () => {}); die();", "SIGKILL", null],
  ["it works for an unknown client", "guard.run('udp', 4999, die);", "SIGKILL", null],
  [
    "it works for a client whose slot another one has taken",
    "recorder.setContainer(5000 + 4096, 'x'); guard.run('udp', 5000, die);",
    "SIGKILL",
    null,
  ],
  ["it has exited by itself", "recorder.close(); die();", "SIGKILL", undefined],
] as const) {
  test(`the record of a process killed while ${what} says so`, () => {
    const folder = newFolder();
    assert.equal(runProcess(folder, ending), end);
    assert.deepEqual(CrashRecorder.open(folder).previous, context);
    // Only the first reader gets it.
    assert.equal(CrashRecorder.open(folder).previous, null);
  });
}

test("a missing file, a damaged one, and one of another version give no record", () => {
  const folder = newFolder();
  assert.equal(CrashRecorder.open(folder).previous, undefined);
  for (const bytes of [Buffer.alloc(0), Buffer.alloc(50, 0xff), Buffer.alloc(1 << 20, 1)]) {
    writeFileSync(join(folder, "black-box"), bytes);
    assert.equal(CrashRecorder.open(folder).previous, undefined);
    truncateSync(join(folder, "black-box"));
  }
});

test("a symbolic link instead of the file is not followed", () => {
  const folder = newFolder();
  symlinkSync("/dev/null", join(folder, "black-box"));
  assert.throws(() => CrashRecorder.open(folder), { code: "ELOOP" });
});
