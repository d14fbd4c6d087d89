// Policies with host: deny, on a live engine: whatever a name is answered with, no container reaches the machine by it. The ways in are
// a port of the host, a port that a container of another network publishes, and the host's own public addresses of both families.

import assert from "node:assert/strict";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type Dns11, dns11, startDns11 } from "../../support/program/dns11.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { Internet, connectTo } from "../../support/rig/internet.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { Greeters } from "../../support/servers/greeters.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

let engine: Engine;
let internet: Internet;
let upstream: Upstream;
let instance: Dns11;
let agent: Container;
let free: Container;
const greeters = new Greeters();
const runner = new NamespaceRunner();
const descriptors: number[] = [];
const file = join(makeFolder("policy-host"), "dns11.yaml");

// Of the host: where it is connected, another public one, of the agents' network, and of no network of Docker's.
const CONNECTED = "203.0.113.1";
const PUBLIC = { 4: "203.0.114.7", 6: "2a00:db8::7" } as const;
const GATEWAY = "172.30.0.1";
const LATER = "192.0.2.77";
const HOST_PORT = 8_099;
const PUBLISHED = 8_080;

function policies(allow: readonly string[], host: "allow" | "deny" = "deny"): string {
  const rules = ["**.at.test", "**.ok.test", "named", "host.docker.internal", ...allow];
  return `version: 1
policies:
  agents:
    for: [network=agents]
    mode: enforce
    addresses: enforce
    private: allow
    host: ${host}
    allow: ${JSON.stringify(rules)}
`;
}

function nameOf(address: string): string {
  return `${address.replaceAll(/[.:]/g, "-")}.at.test`;
}

async function greet(netnsPath: string, port: number): Promise<void> {
  const fd = openSync(netnsPath, "r");
  descriptors.push(fd);
  await greeters.open(port, (listen) => runner.within(fd, listen));
}

async function check(what: string): Promise<string> {
  return (await dns11(["policy", "check", what, "agent", "--state-dir", instance.stateDir, "-H", engine.host])).stdout;
}

before(async () => {
  writeFileSync(file, policies([]));
  engine = await startEngine();
  internet = await Internet.connect(engine.id);
  upstream = await startUpstream(engine);
  for (const address of [`${PUBLIC[4]}/32`, `${PUBLIC[6]}/128`])
    await engine.enter("ip", ["address", "add", address, "dev", "lo"]);
  await createNetwork(engine, "agents", { ipv6: true, subnet: "172.30.0.0/24" });
  await createNetwork(engine, "open");
  agent = await runContainer(engine, { name: "agent", networks: ["agents"], args: [`--add-host=named:${GATEWAY}`] });
  free = await runContainer(engine, { name: "free", networks: ["open"] });
  const server = await runContainer(engine, {
    name: "server",
    networks: ["open"],
    args: [`--publish=${PUBLISHED}:443`],
  });
  await greet(engine.netnsPath, HOST_PORT);
  await greet(`/proc/${server.pid}/ns/net`, 443);
  instance = await startDns11(engine, { args: ["--config", file] });
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await greeters[Symbol.asyncDispose]();
  for (const each of descriptors) closeSync(each);
  runner.close();
  await upstream[Symbol.asyncDispose]();
  await internet[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

test("an allowed name that leads to the machine is refused, and nothing connects to it", async () => {
  for (const address of [CONNECTED, PUBLIC[4], PUBLIC[6], GATEWAY]) {
    const reply = await dig(agent, nameOf(address), address.includes(":") ? "AAAA" : "A");
    assert.equal(reply.status, "NXDOMAIN", address);
    assert.match(reply.raw, /EDE: 15.*host: deny, and the answer has an address of this machine/, address);
    for (const port of [HOST_PORT, PUBLISHED]) {
      if (address !== PUBLIC[6]) assert.equal(await connectTo(free, address, port), "open", `${address} ${port}`);
      assert.equal(await connectTo(agent, address, port), "refused", `${address} ${port}`);
    }
  }
  // What is public and elsewhere opens as ever.
  assert.deepEqual(dataOf(await dig(agent, nameOf("192.0.2.5"))), ["192.0.2.5"]);
  assert.equal(await connectTo(agent, "192.0.2.5", 443), "open");
});

test("an address that was open when the machine got it is closed", async () => {
  assert.deepEqual(dataOf(await dig(agent, nameOf(LATER))), [LATER]);
  assert.equal(await connectTo(agent, LATER, 443), "open");
  await engine.enter("ip", ["address", "add", `${LATER}/32`, "dev", "lo"]);
  for (const port of [HOST_PORT, PUBLISHED]) {
    assert.equal(await connectTo(free, LATER, port), "open");
    assert.equal(await connectTo(agent, LATER, port), "refused");
  }
  await waitFor("the refusal of its name", async () =>
    (await dig(agent, nameOf(LATER))).status === "NXDOMAIN" ? true : undefined,
  );
});

test("a name of the machine that a rule allows resolves and opens nothing, and that is said", async () => {
  assert.deepEqual(dataOf(await dig(agent, "named")), [GATEWAY]);
  for (const port of [HOST_PORT, PUBLISHED]) assert.equal(await connectTo(agent, GATEWAY, port), "refused");
  const closed = /refused.*host: deny/s;
  for (const spelling of [`named:${PUBLISHED}`, `${GATEWAY}:${PUBLISHED}`, `${CONNECTED}:${HOST_PORT}`])
    assert.match(await check(spelling), closed, spelling);
  assert.match(await check(`host.docker.internal:${HOST_PORT}`), closed);
  assert.match(await check("named"), /allowed.*host: deny.*allow 172\.30\.0\.1 opens/s);
  assert.match(await check(`[${PUBLIC[6]}]:${HOST_PORT}`), closed);
  assert.match(await check(nameOf(CONNECTED)), /an answer with an address of this machine is refused \(host: deny/);
});

test("a rule for the address opens what it names, and the name that leads there", async () => {
  writeFileSync(
    file,
    policies([`${CONNECTED}:${HOST_PORT}`, `${GATEWAY}:${PUBLISHED}`, `[${PUBLIC[6]}]:${HOST_PORT}`]),
  );
  await instance.reload();
  await waitFor("the rule", async () => ((await connectTo(agent, CONNECTED, HOST_PORT)) === "open" ? true : undefined));
  assert.deepEqual(dataOf(await dig(agent, nameOf(CONNECTED))), [CONNECTED]);
  assert.equal(await connectTo(agent, CONNECTED, PUBLISHED), "refused");
  assert.equal(await connectTo(agent, GATEWAY, PUBLISHED), "open");
  assert.equal(await connectTo(agent, GATEWAY, HOST_PORT), "refused");
  assert.equal(await connectTo(agent, PUBLIC[6], HOST_PORT), "open");
  assert.match(await check(`named:${PUBLISHED}`), /allowed/);
  assert.match(await check(`named:${HOST_PORT}`), /refused.*host: deny/s);
});

test("with host: allow the machine is open", async () => {
  writeFileSync(file, policies([], "allow"));
  await instance.reload();
  await waitFor("the machine", async () =>
    (await connectTo(agent, PUBLIC[4], HOST_PORT)) === "open" ? true : undefined,
  );
  assert.deepEqual(dataOf(await dig(agent, nameOf(CONNECTED))), [CONNECTED]);
  for (const port of [HOST_PORT, PUBLISHED]) assert.equal(await connectTo(agent, CONNECTED, port), "open");
  assert.match(await check(`${CONNECTED}:${HOST_PORT}`), /allowed.*host: allow/s);
});
