/**
 * Container names on a host where systemd-resolved is in charge: it asks dns11 through a link of dns11's own. Names
 * resolve for every program that asks it, by whatever way, exactly while dns11 runs, and other names always do.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type CommandResult, run, stdoutOf } from "../support/program/command.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { QueryLoop } from "../support/client/query-loop.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { type RootProgram, STUB, type SystemBus, startResolved, startSystemBus } from "../support/servers/resolved.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";
import { waitFor } from "../support/rig/wait.ts";

const UPSTREAM = "10.53.0.1";

let engine: Engine;
let upstream: Upstream;
let bus: SystemBus;
let resolved: RootProgram;
let web: Container;
let address: string;

before(async () => {
  engine = await startEngine({ hasControlGroup: true, resolvConf: `nameserver ${STUB}\n` });
  upstream = await startUpstream(engine, { address: UPSTREAM });
  bus = await startSystemBus(engine);
  await createNetwork(engine, "n1", { subnet: "172.30.16.0/20" });
  await createNetwork(engine, "n2");
  web = await runContainer(engine, { name: "web", networks: ["n1"] });
  await runContainer(engine, { name: "other", networks: ["n2"] });
  resolved = await startResolved(engine, UPSTREAM, [], bus);
  address = (await engine.docker("inspect", "-f", "{{.NetworkSettings.Networks.n1.IPAddress}}", "web")).trim();
});
after(async () => {
  await resolved[Symbol.asyncDispose]();
  await bus[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function onHost(...words: string[]): Promise<CommandResult> {
  return await run("nsenter", ["--target", String(engine.hostPid), "--mount", "--net", "--", ...words]);
}

/** What glibc with nss-resolve gets: an address or a name, or nothing. */
async function lookup(name: string): Promise<string> {
  const words = /^[\d.]+$/.test(name) ? ["hosts", name] : ["ahostsv4", name];
  return (await bus.command("getent", ...words)).stdout.trim();
}

async function stub(...words: string[]): Promise<string[]> {
  return dataOf(await dig(engine, `@${STUB}`, ...words));
}

async function links(): Promise<string[]> {
  const { stdout } = await engine.enter("ip", ["-o", "link"]);
  return [...stdout.matchAll(/dns11-\d+/g)].map(([name]) => name);
}

async function waitForNoLink(): Promise<void> {
  await waitFor("the link to go", async () => ((await links()).length === 0 ? true : undefined));
}

async function start(means = "auto", ...args: string[]): Promise<Dns11> {
  const instance = await startDns11(engine, { args: [`--host-names=${means}`, ...args] });
  await instance.waitFor("host", "attached");
  return instance;
}

async function meansOf(instance: Dns11): Promise<string> {
  const { hostNames } = (await instance.container("host")) ?? {};
  return `${hostNames?.means}: ${hostNames?.why}`;
}

let asked = 0;

/** Never from a cache. */
async function assertOutside(): Promise<void> {
  const number = (asked = (asked % 200) + 1);
  const name = `a${number}.ok.test`;
  assert.match(await lookup(name), new RegExp(`^192\\.0\\.2\\.${number} `), `${name} by nss-resolve`);
}

test("every program that asks systemd-resolved gets names of containers, and other names as before", async () => {
  await using instance = await start();
  assert.equal(await meansOf(instance), "resolved: its stub is in /etc/resolv.conf");
  for (const name of ["web.docker", "api.web.docker", "web.n1.docker"]) {
    assert.match(await lookup(name), new RegExp(`^${address} `), `${name} by nss-resolve`);
    assert.deepEqual(await stub(name), [address], `${name} at the stub`);
    assert.deepEqual(await stub("+tcp", name), [address], `${name} at the stub by TCP`);
    const text = stdoutOf(await bus.command("resolvectl", "query", "--legend=no", name), "resolvectl");
    assert.match(text, new RegExp(`${name}: ${address} .*link: dns11-\\d`));
  }
  assert.match(await lookup(address), /web\.docker/);
  assert.deepEqual(await stub("-x", address), ["web.docker."]);
  assert.equal(await lookup("nobody.docker"), "");
  assert.equal((await dig(engine, `@${STUB}`, "nobody.docker")).status, "NXDOMAIN");
  await upstream.forget();
  await assertOutside();
  assert.deepEqual(await stub("a7.ok.test"), ["192.0.2.7"]);
  const foreign = address.replace(/\d+$/, "250");
  await stub("-x", foreign);
  const reverse = `${foreign.split(".").toReversed().join(".")}.in-addr.arpa`;
  assert.ok((await upstream.queriesFor(reverse)).length > 0, "a reverse name of nobody is forwarded");
  assert.deepEqual(await upstream.queriesFor("web.docker"), []);
});
