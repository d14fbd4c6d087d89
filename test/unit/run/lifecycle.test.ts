// Proves when a supervisor is told that dns11 is alive: as long as the follower of the engine is, and no longer; and that
// not to know how it is ends nothing.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { Lifecycle, type LifecycleSource } from "../../../src/run/lifecycle.ts";
import { createLog } from "../../../src/base/log/log.ts";
import { startSupervisor } from "../../support/program/notified.ts";
import { pause } from "../../support/rig/wait.ts";

test("a follower that is silent for too long ends the beats, and its next sign of life brings them back", async () => {
  const folder = mkdtempSync(join(tmpdir(), "d11-life-"));
  await using supervisor = await startSupervisor(join(folder, "notify.sock"));
  const life = new Lifecycle({ NOTIFY_SOCKET: supervisor.name, WATCHDOG_USEC: "40000" }, createLog("silent"));
  try {
    let lastSignMs = performance.now();
    const source: LifecycleSource = {
      isSynced: true,
      isSettled: true,
      containers: () => [],
      lastActivityMs: () => lastSignMs,
    };
    life.setServing(() => source);
    life.begin();
    const beats = (): number => supervisor.messages.filter((message) => "WATCHDOG" in message).length;
    await supervisor.said("WATCHDOG", "1");
    lastSignMs = performance.now() - LIMITS.followerSilentMs;
    // What was sent before it fell silent may still be on its way.
    await pause(100);
    const heard = beats();
    await supervisor.said("READY", "1");
    await pause(200);
    assert.equal(beats(), heard);
    lastSignMs = performance.now();
    await supervisor.said("WATCHDOG", "1", supervisor.messages.length);
  } finally {
    life.end();
    rmSync(folder, { recursive: true });
  }
});

test("a supervisor does not wait for an engine that does not come, and is told when it has come", async () => {
  const folder = mkdtempSync(join(tmpdir(), "d11-life-"));
  await using supervisor = await startSupervisor(join(folder, "notify.sock"));
  let nowMs = LIMITS.engineStartWaitMs - 1;
  const life = new Lifecycle({ NOTIFY_SOCKET: supervisor.name }, createLog("silent"), () => nowMs);
  try {
    life.setWaitingFor("the engine: nobody is there");
    life.begin();
    const patience = await supervisor.said("STATUS", "Starting: the engine: nobody is there");
    assert.deepEqual(["READY" in patience, "EXTEND_TIMEOUT_USEC" in patience], [false, true]);
    nowMs = LIMITS.engineStartWaitMs + 1;
    assert.equal((await supervisor.said("READY", "1"))["STATUS"], "Starting: the engine: nobody is there");
    assert.equal(life.report().ready, false, "who asks us hears the truth");
    life.setServing(() => ({ isSynced: true, isSettled: true, containers: () => [], lastActivityMs: () => 0 }));
    await supervisor.said("STATUS", "0 of 0 containers attached");
    assert.equal(supervisor.messages.filter((message) => "READY" in message).length, 1);
  } finally {
    life.end();
    rmSync(folder, { recursive: true });
  }
});

test("where it cannot be found out how containers are, nothing ends, and it is told as soon as it can be", async () => {
  const folder = mkdtempSync(join(tmpdir(), "d11-life-"));
  await using supervisor = await startSupervisor(join(folder, "notify.sock"));
  const life = new Lifecycle({ NOTIFY_SOCKET: supervisor.name }, createLog("silent"));
  try {
    let looks = 0;
    const containers = (): [] => {
      if (++looks < 3) throw new Error("no descriptor is left");
      return [];
    };
    life.setServing(() => ({ isSynced: true, isSettled: true, containers, lastActivityMs: () => 0 }));
    life.begin();
    await supervisor.said("READY", "1");
    assert.ok(looks >= 3);
  } finally {
    life.end();
    rmSync(folder, { recursive: true });
  }
});

test("ready is reached once and ends with the end; what is missing before is told", () => {
  const life = new Lifecycle({}, createLog("silent"));
  life.setWaitingFor("the engine: nobody is there");
  assert.deepEqual(life.report().missing, ["the engine: nobody is there"]);
  const pending = { id: "1", name: "web", isPaused: false, networks: [], state: "verifying" } as const;
  const now = { isSynced: false, isSettled: false };
  life.setServing(() => ({ ...now, containers: () => [pending], lastActivityMs: () => 0 }));
  assert.deepEqual(life.report().missing, ["not every running container is known yet"]);
  now.isSynced = true;
  assert.deepEqual(life.report().missing, ['container "web" is being verified']);
  now.isSettled = true;
  assert.equal(life.report().ready, true);
  now.isSettled = false;
  assert.equal(life.report().ready, true, "a container that starts later makes nobody unready");
  life.stopping();
  assert.deepEqual([life.report().ready, life.report().phase], [false, "stopping"]);
});
