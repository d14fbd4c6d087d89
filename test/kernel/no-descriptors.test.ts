/**
 * A process with no descriptor left: containers that it serves still get their queries forwarded, with a descriptor kept back.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { type Socket, connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";

import { check } from "../support/program/command.ts";
import { dig } from "../support/client/dig.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { Netns } from "../support/rig/netns.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import { ScriptedEngine } from "../support/scripted/scripted-engine.ts";
import { waitFor } from "../support/rig/wait.ts";

/** Beyond that dns11 has only its channel to the keeper, and what Node opened for a moment. */
const LOW = 200;

test("without a descriptor a served container's queries are forwarded", async () => {
  await using engine = await ScriptedEngine.start();
  await using client = await Netns.create();
  await using resolver = await startUpstream(client, { address: "127.0.0.11" });
  assert.ok(resolver);
  engine.run({ name: "client", path: client.netnsPath, address: "10.1.0.2" });
  await using dns11 = await startDns11(engine, { env: { DNS11_ANSWERS: "process" } });
  await waitFor("its keeper", async () => ((await dns11.status()).keeper.state === "watching" ? true : undefined));
  const used = (): number[] => readdirSync(`/proc/${dns11.pid}/fd`).map(Number);
  const limit = Math.max(...used().filter((fd) => fd < LOW)) + 1;
  const free = (): number => limit - used().filter((fd) => fd < limit).length;
  await check("prlimit", ["--pid", String(dns11.pid), `--nofile=${limit}:`]);
  const connections: Socket[] = [];
  try {
    await waitFor("all descriptors to be in use", async () => {
      if (free() === 0) return true;
      const connection = connect(join(dns11.stateDir, "SCRIPTED", "control.sock"));
      connection.on("error", () => undefined);
      connections.push(connection);
      await once(connection, "connect");
      return undefined;
    });
    for (const name of ["a.ok.test", "b.ok.test", "c.ok.test"]) {
      assert.equal((await dig(client, name, "+time=2", "+tries=2")).status, "NOERROR", name);
    }
  } finally {
    for (const connection of connections) connection.destroy();
  }
});
