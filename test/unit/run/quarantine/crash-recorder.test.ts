// Proves what the next process learns of one that died: of a real process, which really dies, while it does something.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { CrashRecorder } from "../../../../src/run/quarantine/crash-recorder.ts";

const BLACK_BOX = new URL("../../../../src/run/quarantine/crash-recorder.js", import.meta.url).href;
const GUARD = new URL("../../../../src/base/lib/guard.js", import.meta.url).href;
const ID = "c".repeat(64);

const parent = mkdtempSync(join(tmpdir(), "d11-box-"));
after(() => rmSync(parent, { recursive: true }));
let folders = 0;

function newFolder(): string {
  return mkdtempSync(join(parent, `${folders++}-`));
}

// A process that opens the box, gives asker 5000 a container, and ends as it is told.
function lived(folder: string, ending: string): number | NodeJS.Signals | null {
  const program = `
    import { CrashRecorder } from "${BLACK_BOX}";
    import { guard } from "${GUARD}";
    const box = CrashRecorder.open(${JSON.stringify(folder)});
    guard.install(() => undefined, box.currentClient);
    box.setContainer(5000, "${ID}");
    const die = () => process.kill(process.pid, "SIGKILL");
    ${ending}`;
  const { status, signal } = spawnSync(process.execPath, ["--input-type=module", "--eval", program]);
  return status ?? signal;
}

for (const [what, ending, how, words] of [
  ["it answers", "guard.run('udp', 5000, die);", "SIGKILL", { doing: "answering", containerId: ID }],
  [
    "it answers one from within another's work",
    "guard.run('udp', 1, () => { guard.run('upstream', 5000, die); });",
    "SIGKILL",
    { doing: "answering", containerId: ID },
  ],
  ["it attaches", `box.attaching("${ID}", die);`, "SIGKILL", { doing: "attaching", containerId: ID }],
  ["it is idle", "guard.run('udp', 5000, () => {}); die();", "SIGKILL", null],
  ["it works for one that nobody knows", "guard.run('udp', 4999, die);", "SIGKILL", null],
  [
    "it works for one whose place another has",
    "box.setContainer(5000 + 4096, 'x'); guard.run('udp', 5000, die);",
    "SIGKILL",
    null,
  ],
  ["it has ended by itself", "box.close(); die();", "SIGKILL", undefined],
] as const) {
  test(`a process that is killed while ${what} leaves that behind`, () => {
    const folder = newFolder();
    assert.equal(lived(folder, ending), how);
    assert.deepEqual(CrashRecorder.open(folder).previous, words);
    // It was told once.
    assert.equal(CrashRecorder.open(folder).previous, null);
  });
}

test("a first start, and a file that is damaged or of another version, tell of nothing", () => {
  const folder = newFolder();
  assert.equal(CrashRecorder.open(folder).previous, undefined);
  for (const bytes of [Buffer.alloc(0), Buffer.alloc(50, 0xff), Buffer.alloc(1 << 20, 1)]) {
    writeFileSync(join(folder, "black-box"), bytes);
    assert.equal(CrashRecorder.open(folder).previous, undefined);
    truncateSync(join(folder, "black-box"));
  }
});

test("a link in the place of the file is not followed", () => {
  const folder = newFolder();
  symlinkSync("/dev/null", join(folder, "black-box"));
  assert.throws(() => CrashRecorder.open(folder), { code: "ELOOP" });
});
