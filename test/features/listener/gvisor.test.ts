/**
 * Guests of gVisor: their queries reach nothing in their namespace. With the listener they resolve the names of their networks, which
 * Docker's own resolver cannot give them; their resolv.conf is as before afterwards, however dns11 ends.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { LISTENER_ADDRESSES } from "../../../src/base/model/listener-addresses.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { gvisorRuntime } from "../../support/engine/gvisor.ts";
import { type Dns11, dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { waitFor } from "../../support/rig/wait.ts";

const { ipv4: LISTENER } = LISTENER_ADDRESSES;
const ON = { listener: "true" };

let engine: Engine;
let upstream: Upstream;
let web: Container;
let guest: Container;
let path = "";
let original = "";

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
  writeFileSync(
    join(engine.folder, "daemon.json"),
    JSON.stringify({ runtimes: { "runsc-ptrace": await gvisorRuntime(engine.folder) } }),
  );
  await engine.restartDaemon();
  upstream = await startUpstream(engine);
  await createNetwork(engine, "n1");
  web = await runContainer(engine, { name: "web", networks: ["n1"] });
  const labels = { "io.dns11.search": "project", "io.dns11.project": "shop" };
  guest = await runContainer(engine, { name: "guest", networks: ["n1"], args: ["--runtime=runsc-ptrace"], labels });
  path = (await guest.inspect()).ResolvConfPath;
  original = readFileSync(path, "utf8");
});
after(async () => {
  // The processes of gVisor survive their engine.
  await guest.remove();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** By the resolver of its C library, from inside. */
async function resolves(name: string): Promise<string> {
  return (await guest.exec("nslookup", [name])).stdout;
}

async function untilRewritten(): Promise<void> {
  await waitFor("resolv.conf to name the listener", () =>
    readFileSync(path, "utf8").includes(`nameserver ${LISTENER}`) ? true : undefined,
  );
}

const command = async (instance: Dns11, ...args: string[]): Promise<string> =>
  (await dns11([...args, "-H", engine.host, "--state-dir", instance.stateDir])).stdout;

test("without the listener it resolves nothing, and ps, explain and the doctor say why", async () => {
  assert.doesNotMatch(await resolves("web"), new RegExp(web.address("n1")));
  await using instance = await startDns11(engine);
  const status = await instance.container("guest");
  assert.equal(status?.code, "own-stack");
  assert.match(status?.reason ?? "", /runtime runsc-ptrace .*; with listener: true, dns11 answers it/);
  assert.match(await command(instance, "ps"), /^guest +skipped .*runsc-ptrace/m);
  assert.match(await command(instance, "doctor", "guest"), /own-stack.*runsc-ptrace.*listener: true/s);
  assert.equal(readFileSync(path, "utf8"), original);
});

test("a dry run says what the listener would do for it, and opens nothing", async () => {
  const env = { ...process.env, DNS11_LISTENER: "true" };
  const { code, stdout, stderr } = await dns11(["run", "--dry-run", "-H", engine.host], { env });
  assert.equal(code, 0, stderr);
  assert.match(stdout, /guest .*dns11 answers it at 169\.254\.53\.53 once the listener/);
  assert.doesNotMatch(stdout, /with listener: true/);
  assert.doesNotMatch((await engine.enter("ip", ["-o", "link"])).stdout, / dns11: /);
  assert.equal(readFileSync(path, "utf8"), original);
});

test("it resolves names of its network and others, also a name for its reverse, and keeps its search list", async () => {
  await using instance = await startDns11(engine, { settings: ON });
  await untilRewritten();
  assert.match(await resolves("web"), new RegExp(`Address.*${web.address("n1")}`));
  assert.match(await resolves("n5.ok.test"), /192\.0\.2\.5/);
  assert.match(await resolves(web.address("n1")), /web\.n1/);
  assert.match(await command(instance, "ps"), /^guest +listener /m);
  assert.match(await command(instance, "tail", "guest", "-n", "20"), /n5\.ok\.test/);
  assert.match(await command(instance, "explain", "web", "guest"), new RegExp(web.address("n1")));
  assert.match(
    await command(instance, "doctor", "guest", "--all"),
    new RegExp(`runsc-ptrace .*dns11 answers it at ${LISTENER}; .*it asks the listener`, "s"),
  );
  await instance.stop();
  assert.equal(readFileSync(path, "utf8"), original, "to the byte");
});

test("if it asks for the search list of its project, it gets that as well", async () => {
  await using instance = await startDns11(engine, { settings: ON, env: { DNS11_ZONE: "cluster.local" } });
  await untilRewritten();
  assert.match(readFileSync(path, "utf8"), /^search shop\.svc\.cluster\.local svc\.cluster\.local cluster\.local$/m);
  assert.match(await resolves("web.n1."), new RegExp(web.address("n1")));
  await instance.stop();
  assert.equal(readFileSync(path, "utf8"), original, "to the byte");
});

test("a replacement leaves resolv.conf as it is, a kill is undone by the next start, or by cleanup", async () => {
  await using first = await startDns11(engine, { settings: ON });
  await untilRewritten();
  const written = readFileSync(path, "utf8");
  await using second = await replaceDns11(engine, first, { settings: ON });
  assert.equal(readFileSync(path, "utf8"), written);
  assert.match(await resolves("web"), new RegExp(web.address("n1")));
  process.kill(second.pid, "SIGKILL");
  await second.ended();
  assert.equal(readFileSync(path, "utf8"), written);
  await using third = await startDns11(engine, { stateDir: first.stateDir });
  await waitFor("resolv.conf to be restored", () => (readFileSync(path, "utf8") === original ? true : undefined));
  await third.stop();
  await using fourth = await startDns11(engine, { settings: ON, stateDir: first.stateDir });
  await untilRewritten();
  process.kill(fourth.pid, "SIGKILL");
  await fourth.ended();
  assert.match(await command(fourth, "cleanup"), /guest: restored resolv\.conf/);
  assert.equal(readFileSync(path, "utf8"), original);
});
