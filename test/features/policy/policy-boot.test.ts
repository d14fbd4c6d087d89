// The machine boots: Docker starts containers of an enforced policy before dns11 runs. What was closed is kept, and `dns11 policy
// close` closes it again. The meter is the log of name servers, never dns11's own word.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { PoliciesReport } from "../../../src/api/policies.ts";
import { LISTENER_ADDRESSES } from "../../../src/base/model/listener-addresses.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { PROGRAM } from "../../support/program/built.ts";
import { type Dns11, startDns11 } from "../../support/program/dns11.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

const SETTINGS = `version: 1
listener: true
keeper: off
policies:
  agents:
    for: [network=agents]
    mode: enforce
    addresses: enforce
    allow: ["a1.ok.test:443"]
`;
// A server that a container may ask by itself: another address of the machine, which it reaches by its gateway.
const OUTSIDE = "203.0.113.9";
const ASKS = `for i in 1 2 3 4 5 6 7 8 9 10; do nslookup evil-$i.boot.test; nslookup evil-$i.boot.test ${OUTSIDE}; done; echo asked; sleep 1000`;

let engine: Engine;
let upstream: Upstream;
let outside: Upstream;
let instance: Dns11;
let agent: Container;
const folder = mkdtempSync(join(tmpdir(), "d11-policy-boot-"));
const state = join(folder, "state");
const kept = join(state, "closed-networks.json");
const file = join(folder, "dns11.yaml");

before(async () => {
  writeFileSync(file, SETTINGS);
  engine = await startEngine({ daemonJson: { dns: [LISTENER_ADDRESSES.ipv4] } });
  upstream = await startUpstream(engine);
  outside = await startUpstream(engine, { address: OUTSIDE });
  await createNetwork(engine, "agents");
  instance = await start();
  const command = ["sh", "-c", ASKS];
  agent = await runContainer(engine, { name: "agent", networks: ["agents"], args: ["--restart", "always"], command });
  await untilEnforced();
});
after(async () => {
  rmSync(folder, { recursive: true });
  await instance[Symbol.asyncDispose]();
  await outside[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function start(): Promise<Dns11> {
  return await startDns11(engine, { args: ["--config", file], env: { STATE_DIRECTORY: state } });
}

async function policyOf(name: string): Promise<PoliciesReport["containers"][number] | undefined> {
  return (await instance.client.policies()).containers.find(({ container }) => container === name);
}

async function untilEnforced(): Promise<void> {
  await waitFor("its policy", async () =>
    (await policyOf("agent"))?.addresses?.state === "enforced" ? true : undefined,
  );
}

// As at boot: nothing of dns11 and of its rules is there, and Docker starts its containers.
async function boot(beforeDocker: () => Promise<void>): Promise<void> {
  instance.kill("SIGKILL");
  await instance[Symbol.asyncDispose]();
  await engine.stopDaemon();
  await engine.enter("nft", ["flush", "ruleset"]);
  await engine.enter("nft", ["delete", "table", "inet", "dns11-policy"]);
  await engine.enter("nft", ["delete", "table", "netdev", "dns11-policy"]);
  assert.doesNotMatch((await engine.enter("nft", ["list", "tables"])).stdout, /dns11/);
  await beforeDocker();
  const since = new Date().toISOString();
  await engine.startDaemon();
  await waitFor("its queries", async () =>
    (await engine.docker("logs", "--since", since, "agent").catch(() => "")).includes("asked") ? true : undefined,
  );
  await agent.inspect();
}

async function close(): Promise<{ code: number | string | null; output: string }> {
  const env = { STATE_DIRECTORY: state };
  const { code, stdout, stderr } = await engine.enter(process.execPath, [PROGRAM, "policy", "close"], { env });
  return { code, output: stdout + stderr };
}

async function leaked(): Promise<string[]> {
  const all = [...(await upstream.queries()), ...(await outside.queries())];
  return all.map(({ name }) => name).filter((name) => name.endsWith(".boot.test"));
}

test("what is closed is kept, and policy says whether it will be closed at boot", async () => {
  const { networks } = JSON.parse(readFileSync(kept, "utf8")) as { networks: { name: string; bridge: string }[] };
  assert.deepEqual(
    networks.map(({ name }) => name),
    ["agents"],
  );
  assert.match(networks[0]?.bridge ?? "", /^br-[0-9a-f]{12}$/);
  const found = await policyOf("agent");
  assert.equal(found?.birth.isClosed, true, found?.birth.because);
  assert.equal(found.boot.isClosed, false);
  assert.match(found.boot.because, /dns11-boot\.service is not enabled/);
});

test("the container starts at boot and reaches nothing, until dns11 goes on", async () => {
  assert.deepEqual(await leaked(), []);
  await boot(async () => assert.deepEqual(await close(), { code: 0, output: "closed network agents\n" }));
  assert.deepEqual(await leaked(), []);
  // A second time it leaves the tables alone.
  assert.deepEqual(await close(), { code: 0, output: "the tables of policies are there already\n" });
  instance = await start();
  await untilEnforced();
  assert.deepEqual(dataOf(await dig(agent, "a1.ok.test")), ["192.0.2.1"]);
  assert.equal((await close()).output, "the tables of policies are there already\n");
  assert.deepEqual(await leaked(), []);
});

test("without it the meter shows what a boot lets out", async () => {
  await boot(async () => undefined);
  await waitFor("a leak", async () => ((await leaked()).length > 0 ? true : undefined));
});

test("a file that others may have written, or that would close too much, closes nothing and says so", async () => {
  await engine.stopDaemon();
  const text = readFileSync(kept, "utf8");
  for (const [wrong, reason] of [
    [text.replace(/"\d+\.\d+\.\d+\.\d+\/\d+"/, '"0.0.0.0/0"'), /0\.0\.0\.0\/0 is no network of containers/],
    [text.replace(/"br-\w+"/, '"lo"'), /"lo" is no bridge/],
    ["{", /closed-networks\.json" cannot be used/],
  ] as const) {
    writeFileSync(kept, wrong);
    const { code, output } = await close();
    assert.equal(code, 1);
    assert.match(output, reason);
  }
  assert.doesNotMatch((await engine.enter("nft", ["list", "tables"])).stdout, /dns11/);
  await engine.startDaemon();
});

test("without the right to install rules it says so", async () => {
  const words = ["--bounding-set=-net_admin", process.execPath, PROGRAM, "policy", "close"];
  const { code, stderr } = await engine.enter("setpriv", words, { env: { STATE_DIRECTORY: state } });
  assert.notEqual(code, 0);
  assert.match(stderr, /Missing capabilities: CAP_NET_ADMIN/);
});

test("a policy that is not enforced any more is not kept", async () => {
  writeFileSync(file, "version: 1\n");
  instance = await start();
  await waitFor("the file to go", () => (existsSync(kept) ? undefined : true));
  assert.match((await close()).output, /nothing to close/);
});
