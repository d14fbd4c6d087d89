// Proves that a process which pauses for another one, and goes on because that did not take over, goes on with its quarantines.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { createLog } from "../../../../src/base/log/log.ts";
import { CrashRecorder } from "../../../../src/run/quarantine/crash-recorder.ts";
import { Quarantines } from "../../../../src/run/quarantine/quarantines.ts";
import { waitFor } from "../../../support/rig/wait.ts";

const CLIENT = 5000;
const ID = "c".repeat(64);
const OTHER = "d".repeat(64);
const SOON_MS = 200;

function begun(folder: string): Quarantines {
  const quarantines = Quarantines.open(folder, createLog("silent"));
  quarantines.begin();
  return quarantines;
}

test("a takeover that failed: what answers which container is still recorded, and a quarantine still ends", async () => {
  const folder = mkdtempSync(join(tmpdir(), "d11-paused-"));
  try {
    const quarantine = { untilMs: Date.now() + SOON_MS, doing: "answering", times: 1 };
    writeFileSync(join(folder, "deaths.json"), JSON.stringify({ deaths: [], quarantines: { [OTHER]: quarantine } }));
    const paused = begun(folder);
    let ends = 0;
    paused.watch(() => ends++);
    paused.recorder.setContainer(CLIENT, ID);
    const { currentClient } = paused.recorder;
    paused.close();
    const successor = begun(folder);
    successor.recorder.setContainer(CLIENT, OTHER);
    successor.close();
    paused.begin();
    currentClient[0] = CLIENT;
    assert.equal(paused.recorder.containerOf(CLIENT), ID);
    assert.deepEqual(CrashRecorder.open(folder).previous, { doing: "answering", containerId: ID });
    await waitFor("the quarantine's end", () => (ends > 0 ? true : undefined));
    paused.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
