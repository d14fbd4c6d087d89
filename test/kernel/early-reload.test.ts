/**
 * A reload while a process has not begun to serve: it takes over, and waits for a container that cannot be inspected yet.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { dig } from "../support/client/dig.ts";
import { Dns11, startDns11 } from "../support/program/dns11.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { Netns } from "../support/rig/netns.ts";
import { pause, waitFor } from "../support/rig/wait.ts";
import { ScriptedEngine } from "../support/scripted/scripted-engine.ts";

/** Ample for reading a file of settings. */
const READ_MS = 1_000;

test("settings that are reloaded while a process takes over are in force when it serves", async () => {
  await using engine = await ScriptedEngine.start();
  await using client = await Netns.create();
  engine.run({ name: "client", path: client.netnsPath, address: "10.1.0.2" });
  const path = join(makeFolder("config"), "dns11.yaml");
  writeFileSync(path, "version: 1\nttl: 7s\n");
  const args = ["--config", path];
  await using first = await startDns11(engine, { args });
  const before = engine.followers;
  const release = engine.hold("client");
  await using second = new Dns11(engine.host, { stateDir: first.stateDir, args: [...args, "--replace"] });
  await waitFor("it to follow the engine", () => (engine.followers > before ? true : undefined));
  writeFileSync(path, "version: 1\nttl: 9s\n");
  second.kill("SIGHUP");
  await pause(READ_MS);
  release();
  await waitFor("it to serve", async () =>
    (await second.status().catch(() => undefined))?.pid === second.pid ? true : undefined,
  );
  await second.logs(/settings reloaded/);
  assert.equal((await dig(client, "client")).answer[0]?.ttl, 9);
});
