// A container that the engine cannot inspect while dns11 starts: what an earlier process enforced for it stays, for its names and
// its connections, although its policy is not that of a network. The meter is what arrives outside.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { EngineProxy } from "../support/engine/engine-proxy.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type Dns11, replaceDns11, startDns11 } from "../support/program/dns11.ts";
import { Internet, connectTo } from "../support/rig/internet.ts";
import { pause, waitFor } from "../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

let engine: Engine;
let proxy: EngineProxy;
let internet: Internet;
let upstream: Upstream;
let agent: Container;
let instance: Dns11;
let args: readonly string[];
const POLICIES = `version: 1
policies:
  agents:
    for: [label=agent]
    mode: enforce
    addresses: enforce
    allow: ["a1.ok.test:443"]
`;
// Longer than the keeper's successor takes to give back what nobody has claimed.
const SETTLED_MS = 2_000;

before(async () => {
  engine = await startEngine();
  proxy = await EngineProxy.start(engine);
  internet = await Internet.connect(engine.id);
  upstream = await startUpstream(engine);
  await createNetwork(engine, "open");
  agent = await runContainer(engine, { name: "agent", networks: ["open"], labels: { agent: "1" } });
  await runContainer(engine, { name: "other", networks: ["open"] });
  const file = join(engine.folder, "policies.yaml");
  writeFileSync(file, POLICIES);
  args = ["--config", file];
  instance = await startDns11(engine, { args });
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await internet[Symbol.asyncDispose]();
  proxy[Symbol.dispose]();
  await engine[Symbol.asyncDispose]();
});

async function isHeld(): Promise<void> {
  assert.equal(await connectTo(agent, "192.0.2.1", 443), "open");
  assert.equal(await connectTo(agent, "192.0.2.98", 443), "refused");
  await dig(agent, "+time=1", "+tries=1", "evil.ok.test");
  assert.deepEqual(
    internet.arrived().filter((each) => each.startsWith("192.0.2.98")),
    [],
  );
  assert.deepEqual(await upstream.queriesFor("evil.ok.test"), []);
}

for (const [how, isReplaced] of [
  ["that replaces another one", true],
  ["after a crash", false],
] as const)
  test(`a process ${how} changes nothing for a container that cannot be inspected, until it can be`, async () => {
    await waitFor("its answer", async () => (dataOf(await dig(agent, "a1.ok.test")).length > 0 ? true : undefined));
    await isHeld();
    const { stateDir } = instance;
    await proxy.fail(agent.id);
    if (isReplaced) instance = await replaceDns11(proxy, instance, { args });
    else {
      instance.kill("SIGKILL");
      await instance.ended();
      instance = await startDns11(proxy, { args, stateDir });
    }
    await instance.waitFor("other", "attached");
    await pause(SETTLED_MS);
    await isHeld();
    await proxy.fail();
    await instance.waitFor("agent", "attached");
    assert.deepEqual(dataOf(await dig(agent, "a1.ok.test")), ["192.0.2.1"]);
    await isHeld();
  });
