/**
 * Containers without Docker's resolver have the host's resolv.conf as it was when they started. With `--default-bridge names`,
 * those on the default bridge ask the host's current servers all the same; of the others the doctor says that their file is old.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { dig } from "../../support/client/dig.ts";
import { type Container, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type Dns11, dns11, startDns11 } from "../../support/program/dns11.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type ScriptedServers, startScripted } from "../../support/scripted/scripted.ts";

const FIRST = "10.53.0.2";
/** Nobody but the host reaches it. */
const SECOND = "127.0.0.9";
const OTHER = "10.53.0.3";
const SERVERS = [FIRST, SECOND, OTHER];

let engine: Engine;
let servers: ScriptedServers;
let plain: Container;
let given: Container;
let edited: Container;
let ofHost: Container;
let names = 0;

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${FIRST}\n` });
  servers = await startScripted(engine, "ok", { addresses: SERVERS });
  plain = await runContainer(engine, { name: "plain" });
  given = await runContainer(engine, { name: "given", args: ["--dns", OTHER] });
  edited = await runContainer(engine, { name: "edited" });
  ofHost = await runContainer(engine, { name: "of-host", args: ["--network", "host"] });
});
after(async () => {
  await servers[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function setHostServer(address: string): Promise<void> {
  const script = ["sh", "-ceu", 'echo "nameserver $1" >/etc/resolv.conf', "sh", address];
  const { code, stderr } = await engine.exec("nsenter", ["-t", String(engine.hostPid), "-m", "--", ...script]);
  assert.equal(code, 0, stderr);
}

/** Which server receives a query that the container sends to the one of its file. */
async function serverOf(container: Container, address: string): Promise<string | undefined> {
  const name = `n${(names += 1)}.ok.test`;
  await servers.forget();
  await dig(container, `@${address}`, name);
  const [query] = await servers.queriesFor(name);
  return query === undefined ? undefined : SERVERS[query.server - 1];
}

async function waitForServers(instance: Dns11, name: string, expected: string): Promise<void> {
  await waitFor(`${name} to ask ${expected}`, async () =>
    (await instance.container(name))?.upstreams?.join(" ") === expected ? true : undefined,
  );
}

test("a container asks the host's current servers, also those that only the host reaches, and its own if it has any", async () => {
  await setHostServer(FIRST);
  await using instance = await startDns11(engine, { args: ["--default-bridge", "names"] });
  for (const { name } of [plain, given, edited]) await instance.waitFor(name, "attached");
  await waitForServers(instance, "plain", `host(${FIRST})`);
  assert.equal(await serverOf(plain, FIRST), FIRST);
  await edited.exec("sh", ["-c", `echo nameserver ${OTHER} >/etc/resolv.conf`]);
  await waitForServers(instance, "edited", OTHER);
  await setHostServer(SECOND);
  await waitForServers(instance, "plain", `host(${SECOND})`);
  assert.equal(await serverOf(plain, FIRST), SECOND, "its file still names the first one");
  for (const container of [given, edited]) assert.equal(await serverOf(container, OTHER), OTHER, container.name);
  const state = ["--state-dir", instance.stateDir, "-H", engine.host];
  const explained = await dns11(["explain", "-v", "any.ok.test", "plain", ...state]);
  assert.match(explained.stdout, /the host's current resolv\.conf/);
  assert.doesNotMatch((await dns11(["doctor", "plain", "--all", ...state])).stdout, /as the host did when it started/);
});

test("with strict, the servers of its file are asked", async () => {
  await setHostServer(SECOND);
  await using instance = await startDns11(engine, { args: ["--default-bridge", "names", "--strict"] });
  await waitForServers(instance, "plain", FIRST);
  assert.equal(await serverOf(plain, FIRST), FIRST);
});

test("doctor says whose file is old, and what to run, and the command helps", async () => {
  const doctor = async (name: string): Promise<string> =>
    (await dns11(["doctor", name, "--all", "-H", engine.host])).stdout.replaceAll(/\s+/g, " ");
  await setHostServer(SECOND);
  for (const container of [plain, ofHost]) {
    const said = await doctor(container.name);
    assert.match(said, /it asks 10\.53\.0\.2, as the host did when it started; .* names 127\.0\.0\.9 today/);
    assert.match(said, new RegExp(`docker restart ${container.name}`));
  }
  for (const container of [given, edited])
    assert.doesNotMatch(await doctor(container.name), /as the host did/, container.name);
  await engine.docker("restart", "--time", "0", ofHost.name);
  assert.doesNotMatch(await doctor(ofHost.name), /as the host did/);
});
