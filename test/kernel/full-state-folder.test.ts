/**
 * A state folder on a full file system: dns11 says so before it changes anything. One that becomes full later ends nothing: queries and
 * the control socket go on, and another process can take over.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { check, run } from "../support/program/command.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { Dns11, startDns11 } from "../support/program/dns11.ts";
import { Netns } from "../support/rig/netns.ts";
import { inTime, waitFor } from "../support/rig/wait.ts";
import { ScriptedEngine } from "../support/scripted/scripted-engine.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-full-"));
await check("mount", ["-t", "tmpfs", "-o", "size=256k,mode=755", "d11-full", folder]);
after(async () => {
  await check("umount", ["--lazy", folder]);
  rmSync(folder, { recursive: true });
});

/** Fills what is left, to the last byte. */
async function fill(): Promise<void> {
  const { stderr } = await run("dd", ["if=/dev/zero", `of=${join(folder, "filler")}`, "bs=4k"]);
  assert.match(stderr, /No space left/);
}

test("a full one is a fault with a remedy, and no container is served", async () => {
  await using engine = await ScriptedEngine.start();
  await fill();
  await using dns11 = new Dns11(engine.host, { stateDir: folder });
  assert.equal(await inTime(dns11.exited, "dns11 to end"), 1);
  // With a stack it would be more than these two lines.
  assert.match(dns11.log, /^dns11: The state directory .* cannot be used: ENOSPC.*\n +It is full: free space.*\n$/);
  rmSync(join(folder, "filler"));
});

test("one that becomes full later ends nothing, and another process can take over", async () => {
  await using engine = await ScriptedEngine.start();
  await using client = await Netns.create();
  engine.run({ name: "client", path: client.netnsPath, address: "10.1.0.2" });
  await using dns11 = await startDns11(engine, { stateDir: folder });
  await waitFor("its keeper", async () => ((await dns11.status()).keeper.state === "watching" ? true : undefined));
  await fill();
  await dns11.flushCache();
  assert.deepEqual(dataOf(await dig(client, "client")), ["10.1.0.2"]);
  await using next = new Dns11(engine.host, { stateDir: folder, args: ["--replace"] });
  await dns11.ended();
  assert.equal((await next.status()).pid, next.pid);
  assert.deepEqual(dataOf(await dig(client, "client")), ["10.1.0.2"]);
});
