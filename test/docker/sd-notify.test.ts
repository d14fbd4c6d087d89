/**
 * sd_notify: the messages to a supervisor, over a real socket of each kind: ready, the number of attached containers, reloads,
 * the stop, and the watchdog.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { createNetwork, runContainer } from "../support/engine/container.ts";
import { Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { uniqueName } from "../support/rig/netns.ts";
import { startSupervisor } from "../support/program/notify-socket.ts";

/** Its start costs processor time, and it has no part in this. */
const WITHOUT_KEEPER = { DNS11_KEEPER: "off" };

let engine: Engine;

before(async () => {
  engine = await startEngine();
  await createNetwork(engine, "n1");
});
after(async () => {
  await engine[Symbol.asyncDispose]();
});

test("start, status, watchdog, a reload, a failed one and the stop are reported to a socket with a path", async () => {
  await using _web = await runContainer(engine, { name: "web", networks: ["n1"] });
  await using supervisor = await startSupervisor(join(engine.folder, "notify.sock"));
  const config = join(engine.folder, "dns11.yaml");
  writeFileSync(config, "version: 1\n");
  await using dns11 = await startDns11(engine, {
    args: ["--config", config],
    env: { ...WITHOUT_KEEPER, NOTIFY_SOCKET: supervisor.name, WATCHDOG_USEC: "400000" },
  });
  const ready = await supervisor.message("READY", "1");
  assert.equal(ready["STATUS"], "1 of 1 containers attached");
  await supervisor.message("WATCHDOG", "1");
  const beats = supervisor.messages.filter((message) => message["WATCHDOG"] === "1").length;
  await supervisor.message("WATCHDOG", "1", supervisor.messages.length);
  assert.ok(beats >= 1);

  await using _late = await runContainer(engine, { name: "late", networks: ["n1"] });
  await supervisor.message("STATUS", "2 of 2 containers attached");

  const before_ = process.hrtime.bigint() / 1000n;
  const skipped = supervisor.messages.length;
  dns11.kill("SIGHUP");
  const reloading = await supervisor.message("RELOADING", "1", skipped);
  const sentUsec = BigInt(reloading["MONOTONIC_USEC"] ?? 0);
  assert.ok(
    sentUsec >= before_ && sentUsec <= process.hrtime.bigint() / 1000n,
    "the timestamp is of the monotonic clock",
  );
  await supervisor.message("READY", "1", skipped);

  writeFileSync(config, "version: 1\nttl: never\n");
  const reloaded = supervisor.messages.length;
  dns11.kill("SIGHUP");
  await supervisor.message("RELOADING", "1", reloaded);
  await supervisor.message("READY", "1", reloaded);
  await dns11.logs(/reload failed, keeping the previous settings/);

  const running = supervisor.messages.length;
  assert.equal(await dns11.stop(), 0);
  await supervisor.message("STOPPING", "1", running);
  const order = supervisor.messages.flatMap((message) =>
    ["READY", "RELOADING", "STOPPING"].filter((key) => message[key] === "1"),
  );
  assert.deepEqual(order, ["READY", "RELOADING", "READY", "RELOADING", "READY", "STOPPING"]);
});

test("with an abstract socket, and without an engine, the start timeout is extended", async () => {
  await using supervisor = await startSupervisor(`@${uniqueName()}`);
  const socket = join(engine.folder, "silent.sock");
  const silentServer = createServer((connection) => connection.destroy());
  await new Promise<void>((resolve) => silentServer.listen(socket, resolve));
  try {
    await using dns11 = new Dns11(`unix://${socket}`, { env: { ...WITHOUT_KEEPER, NOTIFY_SOCKET: supervisor.name } });
    const status = await supervisor.message("STATUS", /^Starting: waiting for the engine/);
    assert.ok(Number(status["EXTEND_TIMEOUT_USEC"]) >= 10_000_000);
    dns11.kill("SIGTERM");
    assert.equal(await dns11.exited, 0);
    assert.equal(supervisor.messages.filter((message) => "READY" in message).length, 0);
  } finally {
    silentServer.close();
  }
});

test("a watchdog for another process gets no message, and an unsupported socket is only logged", async () => {
  await using supervisor = await startSupervisor(join(engine.folder, "other.sock"));
  const env = { ...WITHOUT_KEEPER, NOTIFY_SOCKET: supervisor.name, WATCHDOG_USEC: "400000", WATCHDOG_PID: "1" };
  await using dns11 = await startDns11(engine, { env });
  await supervisor.message("READY", "1");
  assert.equal(await dns11.stop(), 0);
  await supervisor.message("STOPPING", "1");
  assert.equal(supervisor.messages.filter((message) => "WATCHDOG" in message).length, 0);
  await using other = await startDns11(engine, { env: { ...WITHOUT_KEEPER, NOTIFY_SOCKET: "vsock:2:1" } });
  await other.logs(/NOTIFY_SOCKET/);
});
