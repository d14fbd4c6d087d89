/**
 * Container names on hosts whose resolv.conf names a resolver of their own: systemd-resolved at its stub, dnsmasq at a
 * loopback address, and a server elsewhere. On each, programs with glibc, musl, static Go and Node resolve them before,
 * during and after an end of dns11, and other names always.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { createNetwork, runContainer } from "../../support/engine/container.ts";
import { ControlGroup } from "../../support/engine/control-group.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type CommandResult, run, stdoutOf } from "../../support/program/command.ts";
import { HostClients } from "../../support/client/host-clients.ts";
import { startDns11 } from "../../support/program/dns11.ts";
import { startDnsmasq } from "../../support/servers/real-server.ts";
import { STUB, startResolved } from "./resolved.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { waitFor } from "../../support/rig/wait.ts";

const UPSTREAM = "10.53.0.1";
const DNSMASQ = "127.0.0.1";

let engine: Engine;
let clients: HostClients;
let upstream: Upstream;
let address: string;

before(async () => {
  engine = await startEngine({ hasControlGroup: true, resolvConf: `nameserver ${UPSTREAM}\n` });
  upstream = await startUpstream(engine, { address: UPSTREAM });
  clients = await HostClients.prepare(engine);
  await createNetwork(engine, "n1");
  await runContainer(engine, { name: "web", networks: ["n1"] });
  address = (await engine.docker("inspect", "-f", "{{.NetworkSettings.Networks.n1.IPAddress}}", "web")).trim();
});
after(async () => {
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function onHost(command: string, ...args: string[]): Promise<CommandResult> {
  return await run("nsenter", ["--target", String(engine.hostPid), "--mount", "--net", "--", command, ...args]);
}

async function assertLookup(name: string, ...addresses: string[]): Promise<void> {
  assert.deepEqual(await clients.lookup(name), clients.all(...addresses), name);
}

/** Names of containers resolve exactly while dns11 runs, and an outside name at each step. `meanwhile` happens while it does. */
async function assertThroughLife(server: string, meanwhile = async (): Promise<void> => undefined): Promise<void> {
  stdoutOf(await onHost("sh", "-c", `echo nameserver ${server} > /etc/resolv.conf`), "resolv.conf");
  let number = 0;
  const assertOutside = async (): Promise<void> => {
    number++;
    await assertLookup(`a${number}.ok.test`, `192.0.2.${number}`);
  };
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    await assertLookup("web.docker");
    await assertOutside();
    await using dns11 = await startDns11(engine, { args: ["--host-names"] });
    await dns11.waitFor("host", "attached");
    await assertLookup("web.docker", address);
    await assertLookup("api.web.n1.docker", address);
    await assertOutside();
    if (signal === "SIGTERM") await meanwhile();
    dns11.kill(signal);
    await assertOutside();
    await waitFor("the rules to go", async () =>
      (await engine.enter("nft", ["list", "tables"])).stdout.includes("dns11") ? undefined : true,
    );
    await assertOutside();
  }
}

test("a server elsewhere", async () => {
  await assertThroughLife(UPSTREAM);
});

test("dnsmasq at a loopback address", async () => {
  using group = new ControlGroup(`${engine.id}-dnsmasq`);
  await using _ = await startDnsmasq(engine, {
    address: DNSMASQ,
    prefix: group.prefix,
    lines: [`server=${UPSTREAM}`, "cache-size=0"],
  });
  await assertThroughLife(DNSMASQ);
});

test("the stub of systemd-resolved, also after resolved was replaced", async () => {
  using group = new ControlGroup(`${engine.id}-resolved`);
  let resolved = await startResolved(engine, UPSTREAM, group.prefix);
  try {
    await assertThroughLife(STUB, async () => {
      await resolved[Symbol.asyncDispose]();
      await assertLookup("web.docker", address);
      resolved = await startResolved(engine, UPSTREAM, group.prefix);
      await assertLookup("web.docker", address);
      await assertLookup("a99.ok.test", "192.0.2.99");
    });
  } finally {
    await resolved[Symbol.asyncDispose]();
  }
});
