/**
 * The start beside running containers: none is served before the names of all are known. A container whose neighbour is
 * still unknown would have its name sent upstream, where it does not exist.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import { dataOf, dig } from "../support/client/dig.ts";
import { Dns11, WITHOUT_KEEPER } from "../support/program/dns11.ts";
import { Netns } from "../support/rig/netns.ts";
import { waitFor } from "../support/rig/wait.ts";
import { ScriptedEngine } from "../support/scripted/scripted-engine.ts";

test("no container is served while another one is still inspected", async () => {
  await using engine = await ScriptedEngine.start();
  await using client = await Netns.create();
  await using web = await Netns.create();
  await using late = await Netns.create();
  const release = engine.hold("web");
  engine.run({ name: "client", path: client.netnsPath, address: "10.1.0.2" });
  engine.run({ name: "web", path: web.netnsPath, address: "10.1.0.3" });
  await using dns11 = new Dns11(engine.host, { env: WITHOUT_KEEPER });
  try {
    await waitFor("the first container to be known", async () => await stateOf(dns11, "client"));
    // By the time that its event, its inspect and two requests have been answered, the first could be attached.
    engine.run({ name: "late", path: late.netnsPath, address: "10.1.0.4" });
    await waitFor("a later one to be known", async () => await stateOf(dns11, "late"));
    assert.deepEqual([await stateOf(dns11, "client"), await stateOf(dns11, "late")], ["opening", "opening"]);
    assert.doesNotMatch((await client.enter("nft", ["list", "ruleset"])).stdout, /dns11/);
  } finally {
    release();
  }
  await dns11.waitUntilReady();
  assert.deepEqual(dataOf(await dig(client, "web")), ["10.1.0.3"]);
});

async function stateOf(dns11: Dns11, name: string): Promise<string | undefined> {
  // Before it listens there is no status.
  return (await dns11.container(name).catch(() => undefined))?.state;
}
