// Proves that the supervisor gets watchdog messages only while the follower of the engine is alive, and that a report that
// fails does not stop reporting.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { LIMITS } from "../../../src/base/limits.ts";
import { Lifecycle, type LifecycleSource } from "../../../src/run/lifecycle.ts";
import { createLog } from "../../../src/base/log/log.ts";
import { startSupervisor } from "../../support/program/notify-socket.ts";
import { pause } from "../../support/rig/wait.ts";

test("watchdog messages stop while the follower is silent for too long, and resume with its next activity", async () => {
  const folder = mkdtempSync(join(tmpdir(), "d11-life-"));
  await using supervisor = await startSupervisor(join(folder, "notify.sock"));
  const lifecycle = new Lifecycle({ NOTIFY_SOCKET: supervisor.name, WATCHDOG_USEC: "40000" }, createLog("silent"));
  try {
    let lastActivityMs = performance.now();
    const source: LifecycleSource = {
      isSynced: true,
      isSettled: true,
      containers: () => [],
      lastActivityMs: () => lastActivityMs,
    };
    lifecycle.setServing(() => source);
    lifecycle.begin();
    const watchdogMessages = (): number => supervisor.messages.filter((message) => "WATCHDOG" in message).length;
    await supervisor.message("WATCHDOG", "1");
    await supervisor.message("READY", "1");
    lastActivityMs = performance.now() - LIMITS.followerSilentMs;
    // Earlier messages, which may still be in transit, arrive before this one.
    lifecycle.reloading();
    await supervisor.message("RELOADING", "1");
    const sentBefore = watchdogMessages();
    await pause(200);
    assert.equal(watchdogMessages(), sentBefore);
    lastActivityMs = performance.now();
    await supervisor.message("WATCHDOG", "1", supervisor.messages.length);
  } finally {
    lifecycle.end();
    rmSync(folder, { recursive: true });
  }
});

test("a supervisor does not wait for an engine that does not start, and is notified once it has", async () => {
  const folder = mkdtempSync(join(tmpdir(), "d11-life-"));
  await using supervisor = await startSupervisor(join(folder, "notify.sock"));
  let nowMs = LIMITS.engineStartWaitMs - 1;
  const lifecycle = new Lifecycle({ NOTIFY_SOCKET: supervisor.name }, createLog("silent"), () => nowMs);
  try {
    lifecycle.setWaitingFor("waiting for the engine: connection refused");
    lifecycle.begin();
    const starting = await supervisor.message("STATUS", "Starting: waiting for the engine: connection refused");
    assert.deepEqual(["READY" in starting, "EXTEND_TIMEOUT_USEC" in starting], [false, true]);
    nowMs = LIMITS.engineStartWaitMs + 1;
    assert.equal(
      (await supervisor.message("READY", "1"))["STATUS"],
      "Starting: waiting for the engine: connection refused",
    );
    assert.equal(lifecycle.report().ready, false, "the report still says that it is not ready");
    lifecycle.setServing(() => ({ isSynced: true, isSettled: true, containers: () => [], lastActivityMs: () => 0 }));
    await supervisor.message("STATUS", "0 of 0 containers attached");
    assert.equal(supervisor.messages.filter((message) => "READY" in message).length, 1);
  } finally {
    lifecycle.end();
    rmSync(folder, { recursive: true });
  }
});

test("a failing report does not stop reporting, and readiness is reported as soon as possible", async () => {
  const folder = mkdtempSync(join(tmpdir(), "d11-life-"));
  await using supervisor = await startSupervisor(join(folder, "notify.sock"));
  const lifecycle = new Lifecycle({ NOTIFY_SOCKET: supervisor.name }, createLog("silent"));
  try {
    let calls = 0;
    const containers = (): [] => {
      if (++calls < 2) throw new Error("no descriptor is left");
      return [];
    };
    lifecycle.setServing(() => ({ isSynced: true, isSettled: true, containers, lastActivityMs: () => 0 }));
    lifecycle.begin();
    await supervisor.message("READY", "1");
    assert.ok(calls >= 2);
  } finally {
    lifecycle.end();
    rmSync(folder, { recursive: true });
  }
});

test("a run becomes ready once and stays ready until it stops; before that the report lists what is missing", () => {
  const lifecycle = new Lifecycle({}, createLog("silent"));
  lifecycle.setWaitingFor("waiting for the engine: connection refused");
  assert.deepEqual(lifecycle.report().missing, ["waiting for the engine: connection refused"]);
  const pending = {
    id: "1",
    name: "web",
    isPaused: false,
    project: null,
    service: null,
    networks: [],
    state: "verifying",
  } as const;
  const now = { isSynced: false, isSettled: false };
  lifecycle.setServing(() => ({ ...now, containers: () => [pending], lastActivityMs: () => 0 }));
  assert.deepEqual(lifecycle.report().missing, ["the list of running containers is not complete yet"]);
  now.isSynced = true;
  assert.deepEqual(lifecycle.report().missing, ['container "web" is being verified']);
  now.isSettled = true;
  assert.equal(lifecycle.report().ready, true);
  now.isSettled = false;
  assert.equal(lifecycle.report().ready, true, "a container that starts later does not make it unready");
  lifecycle.stopping();
  assert.deepEqual([lifecycle.report().ready, lifecycle.report().phase], [false, "stopping"]);
});
