// A policy with addresses, the listener, and Docker's own resolver forwarding to it: no refused name leaves the machine when a container
// starts, by Docker's own ports, or after dns11 and its keeper were killed. The meter is the log of the name server, never dns11's own word.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { PoliciesReport } from "../../../src/api/policies.ts";
import { LISTENER_ADDRESSES } from "../../../src/base/model/listener-addresses.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { resolverPorts } from "../../support/client/resolver-ports.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type Dns11, startDns11 } from "../../support/program/dns11.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

const STARTS = 5;
const SETTINGS = `version: 1
listener: true
policies:
  agents:
    for: [network=agents]
    mode: enforce
    addresses: enforce
    allow: ["a1.ok.test:443"]
`;

let engine: Engine;
let upstream: Upstream;
let instance: Dns11;
let agent: Container;
const folder = mkdtempSync(join(tmpdir(), "d11-policy-moments-"));

before(async () => {
  const file = join(folder, "dns11.yaml");
  writeFileSync(file, SETTINGS);
  engine = await startEngine({ daemonJson: { dns: [LISTENER_ADDRESSES.ipv4] } });
  upstream = await startUpstream(engine);
  await createNetwork(engine, "agents");
  instance = await startDns11(engine, { args: ["--config", file] });
  agent = await runContainer(engine, { name: "agent", networks: ["agents"] });
  await waitFor("its policy", async () =>
    (await policyOf("agent"))?.addresses?.state === "enforced" ? true : undefined,
  );
});
after(async () => {
  rmSync(folder, { recursive: true });
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function policyOf(name: string): Promise<PoliciesReport["containers"][number] | undefined> {
  return (await instance.client.policies()).containers.find(({ container }) => container === name);
}

test("an allowed name is answered, and every moment is closed", async () => {
  assert.deepEqual(dataOf(await dig(agent, "a1.ok.test")), ["192.0.2.1"]);
  assert.equal((await dig(agent, "evil-life.ok.test")).status, "NXDOMAIN");
  assert.deepEqual(await upstream.queriesFor("evil-life.ok.test"), []);
  const found = await policyOf("agent");
  assert.deepEqual(
    [found?.birth, found?.life, found?.death].map((moment) => moment?.isClosed),
    [true, true, true],
    JSON.stringify(found),
  );
});

test("no name leaves with a container's first instructions", async () => {
  for (let start = 0; start < STARTS; start++) {
    const name = `born-${start}`;
    const script = `for i in 1 2 3 4 5; do nslookup evil-${name}-$i.ok.test; done; echo asked; sleep 300`;
    const born = await runContainer(engine, { name, networks: ["agents"], command: ["sh", "-c", script] });
    await waitFor("its queries", async () =>
      (await engine.docker("logs", name)).includes("asked") ? true : undefined,
    );
    await born.remove();
    for (const index of [1, 2, 3, 4, 5])
      assert.deepEqual(await upstream.queriesFor(`evil-${name}-${index}.ok.test`), [], name);
  }
});

test("no name leaves by the ports of Docker's own resolver", async () => {
  const { udp: ports } = await resolverPorts(agent);
  assert.ok(ports.length > 0, "it has none");
  for (const port of ports) await dig(agent, "+time=1", "+tries=1", "-p", String(port), `evil-port-${port}.ok.test`);
  for (const port of ports) assert.deepEqual(await upstream.queriesFor(`evil-port-${port}.ok.test`), []);
});

test("no name leaves after dns11 and its keeper were killed, and the next one goes on", async () => {
  const { pid: keeper } = (await instance.status()).keeper;
  // One that is about to start another keeper must not.
  instance.kill("SIGSTOP");
  process.kill(keeper ?? assert.fail("it has none"), "SIGKILL");
  instance.kill("SIGKILL");
  await instance.ended();
  await waitFor("the rules to go", async () =>
    (await agent.enter("nft", ["list", "tables"])).stdout.includes("dns11") ? undefined : true,
  );
  for (const index of [1, 2, 3]) await dig(agent, "+time=1", "+tries=1", `evil-death-${index}.ok.test`);
  const late = await runContainer(engine, { name: "late", networks: ["agents"] });
  await dig(late, "+time=1", "+tries=1", "evil-late.ok.test");
  const names = ["evil-death-1", "evil-death-2", "evil-death-3", "evil-late"];
  for (const name of names) assert.deepEqual(await upstream.queriesFor(`${name}.ok.test`), [], name);
  const { stateDir } = instance;
  instance = await startDns11(engine, { args: ["--config", join(folder, "dns11.yaml")], stateDir });
  await instance.waitFor("late", "attached");
  assert.deepEqual(dataOf(await dig(late, "a1.ok.test")), ["192.0.2.1"]);
});
