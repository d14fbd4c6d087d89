// A container that the engine cannot inspect. While dns11 starts, what an earlier process enforced for it stays, for its names and
// its connections, although its policy is not that of a network. One that starts is held by its address, because it might have a
// policy. The meter is what arrives outside.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../../support/client/dig.ts";
import { Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { EngineProxy } from "../../support/engine/engine-proxy.ts";
import { ControlGroup } from "../../support/engine/control-group.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type Dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { Internet, connectTo } from "../../support/rig/internet.ts";
import { pause, waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

let engine: Engine;
let proxy: EngineProxy;
let internet: Internet;
let upstream: Upstream;
let agent: Container;
let instance: Dns11;
/** Where only Docker's resolver knows the servers, as behind this proxy, dns11 asks it, which a policy allows its group alone. */
let group: ControlGroup;
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
  engine = await startEngine({ suite: "bookworm" });
  proxy = await EngineProxy.start(engine);
  internet = await Internet.connect(engine.id);
  upstream = await startUpstream(engine);
  await createNetwork(engine, "open");
  agent = await runContainer(engine, { name: "agent", networks: ["open"], labels: { agent: "1" } });
  await runContainer(engine, { name: "other", networks: ["open"] });
  const file = join(engine.folder, "policies.yaml");
  writeFileSync(file, POLICIES);
  args = ["--config", file];
  group = new ControlGroup(`${engine.id}-dns11`, { isLeft: true });
  const { prefix } = group;
  instance = await startDns11(engine, { args, prefix });
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  group[Symbol.dispose]();
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
    if (isReplaced) instance = await replaceDns11(proxy, instance, { args, prefix: group.prefix });
    else {
      instance.kill("SIGKILL");
      await instance.ended();
      instance = await startDns11(proxy, { args, stateDir, prefix: group.prefix });
    }
    await instance.waitFor("other", "attached");
    await pause(SETTLED_MS);
    await isHeld();
    await proxy.fail();
    await instance.waitFor("agent", "attached");
    assert.deepEqual(dataOf(await dig(agent, "a1.ok.test")), ["192.0.2.1"]);
    await isHeld();
  });

// What arrives of a connection that the container begins.
async function arrivalsFrom(container: Container, address: string): Promise<string[]> {
  internet.arrived();
  const script = `exec 3<>/dev/tcp/${address}/443`;
  await container.enter("timeout", ["1", "bash", "--norc", "-c", script]);
  return internet.arrived().filter((each) => each.startsWith(address));
}

for (const [how, begin] of [
  ["fails to inspect", async (id: string) => await proxy.fail(id)],
  ["takes long to inspect", async (id: string) => await proxy.delay(id)],
] as const)
  test(`a new container that the engine ${how} asks and sends nothing until it is known, and then what its policy allows`, async () => {
    const seen = instance.log.length;
    const run = async (name: string, labels: Record<string, string>): Promise<Container> =>
      await runContainer(engine, { name, networks: ["open"], labels, beforeStart: begin });
    await using policed = await run("policed", { agent: "1" });
    await using ordinary = await run("ordinary", {});
    const other = await Container.of(engine, "other");
    for (const { id } of [policed, ordinary])
      await waitFor(
        `${id} to be held`,
        () =>
          instance.log.slice(seen).includes(`"container":"${id.slice(0, 12)}","msg":"holding a container`) || undefined,
      );
    for (const each of [policed, ordinary]) assert.deepEqual(await arrivalsFrom(each, "192.0.2.98"), []);
    // Docker's resolver would forward it.
    for (const each of [policed, ordinary]) {
      await instance.waitFor(each.id.slice(0, 12), "attached");
      const name = `${each.name}.evil.ok.test`;
      assert.equal((await dig(each, name)).status, "NXDOMAIN");
      assert.deepEqual(await upstream.queriesFor(name), []);
    }
    assert.equal(await connectTo(other, "192.0.2.98", 443), "open");
    await proxy.fail();
    for (const { name } of [policed, ordinary]) await instance.waitFor(name, "attached");
    assert.notDeepEqual(dataOf(await dig(ordinary, "a2.ok.test")), []);
    await waitFor("the ordinary one to be released", async () =>
      (await arrivalsFrom(ordinary, "192.0.2.98")).length > 0 ? true : undefined,
    );
    assert.equal(await connectTo(policed, "192.0.2.98", 443), "refused");
    assert.deepEqual(await arrivalsFrom(policed, "192.0.2.98"), []);
  });
