/**
 * Names in local, which machines of the local network announce: containers resolve them by the avahi-daemon of the engine's host. What
 * it says is not trusted, and where there is none, the cause says so.
 */
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { type Dns11, dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { stdoutOf } from "../../support/program/command.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { type Avahi, LAN, LINK, type Machine, addMachine, askAvahi, startHostAvahi, startIn } from "./avahi.ts";

const BRIDGE = "br-shop";
const SUBNET = "172.30.32.0/24";
/** Addresses that no machine of the network has, though one may announce them. */
const LIES = {
  "loopback.local": "127.0.0.5",
  "metadata.local": "169.254.169.254",
  "container.local": "172.30.32.77",
} as const;

let engine: Engine;
let upstream: Upstream;
let machine: Machine;
let avahi: Avahi;
let app: Container;
let dark: Container;
let config: string;
let instance: Dns11;

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
  upstream = await startUpstream(engine);
  machine = await addMachine(engine, {
    hostName: "printer",
    hosts: { "scanner.local": "192.168.77.9", "a.b.local": "192.168.77.10", ...LIES },
  });
  const args = [`--opt=com.docker.network.bridge.name=${BRIDGE}`];
  await createNetwork(engine, "shop", { subnet: SUBNET, args });
  await createNetwork(engine, "inside", { internal: true });
  app = await runContainer(engine, { name: "app", networks: ["shop"] });
  dark = await runContainer(engine, { name: "dark", networks: ["inside"] });
  avahi = await startHostAvahi(engine, { hostName: "machine", links: [LINK, BRIDGE] });
  config = join(engine.folder, "settings.yaml");
  writeFileSync(config, "version: 1\nmdns: auto\n");
  instance = await startDns11(engine, { args: ["--config", config] });
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await avahi[Symbol.asyncDispose]();
  await machine[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function command(...args: string[]): Promise<string> {
  return (await dns11([...args, "-H", engine.host, "--state-dir", instance.stateDir])).stdout;
}

async function reload(text: string): Promise<void> {
  writeFileSync(config, `version: 1\n${text}`);
  stdoutOf(await dns11(["reload", "-H", engine.host, "--state-dir", instance.stateDir]), "reload");
}

/** A machine may still be announcing itself. */
async function resolves(name: string, type: string, address: string): Promise<void> {
  await waitFor(`${name} ${type}`, async () =>
    dataOf(await dig(app, name, type)).includes(address) ? true : undefined,
  );
}

test("a container resolves a machine of the local network, by both families, in capitals and below other labels", async () => {
  await resolves("printer.local", "A", LAN.machine);
  await resolves("printer.local", "AAAA", LAN.machine6);
  await resolves("PRINTER.LOCAL", "A", LAN.machine);
  await resolves("a.b.local", "A", "192.168.77.10");
  assert.deepEqual(dataOf(await dig(app, "+tcp", "printer.local")), [LAN.machine]);
  const [record] = (await dig(app, "printer.local")).answer;
  assert.ok(record !== undefined && record.ttl <= 10, JSON.stringify(record));
  assert.match(await engine.docker("exec", "app", "nslookup", "printer.local"), /192\.168\.77\.2/);
  assert.deepEqual(await upstream.queriesFor("printer.local"), []);
});

test("a name with one family exists, and has no address of the other; other types have no records", async () => {
  await resolves("scanner.local", "A", "192.168.77.9");
  for (const type of ["AAAA", "MX", "HTTPS"]) {
    const { status, answer } = await dig(app, "scanner.local", type);
    assert.deepEqual([status, answer], ["NOERROR", []], type);
  }
});

test("a name that nobody announces does not exist, and the cause says who was asked", async () => {
  assert.equal((await dig(app, "nobody.local")).status, "NXDOMAIN");
  const { causes } = await instance.client.explain({ container: "app", name: "nobody.local", type: "A" });
  assert.equal(causes[0]?.code, "not-announced");
  assert.match(causes[0].sentence, /no machine of the local network announces "nobody\.local": avahi-daemon/);
  assert.match(await command("failures", "app", "--all"), /nobody\.local/);
  assert.match(await command("status"), /names in local are asked from avahi-daemon/);
  const doctor = await command("doctor", "--json");
  assert.match(doctor, /"mdns".*names in local are asked from avahi-daemon/s);
  // The doctor asks it as any server, by UDP and TCP.
  assert.match(doctor, /host\(127\.0\.0\.1:\d+\): udp NOERROR in [\d.]+ ms, tcp NOERROR/);
  assert.deepEqual(await upstream.queriesFor("nobody.local"), []);
});

test("addresses that mean another machine, or a container, are not passed on", async () => {
  for (const [name, address] of Object.entries(LIES)) {
    await waitFor(`${name} on the host`, async () =>
      (await askAvahi(engine, `RESOLVE-HOSTNAME-IPV4 ${name}`)).includes(address) ? true : undefined,
    );
    const { status, answer } = await dig(app, name);
    assert.deepEqual([status, answer], ["NXDOMAIN", []], name);
  }
});

test("what a container announces on its network is not of the local network", async () => {
  const fake = await startIn(app, { hostName: "bank", links: ["eth0"], hosts: { "far.local": "192.168.77.99" } });
  try {
    // The host's own programs see it.
    await waitFor("the name on the host", async () =>
      (await askAvahi(engine, "RESOLVE-HOSTNAME-IPV4 far.local")).includes("192.168.77.99") ? true : undefined,
    );
    for (const name of ["bank.local", "far.local"]) assert.equal((await dig(app, name)).status, "NXDOMAIN", name);
  } finally {
    await fake[Symbol.asyncDispose]();
  }
});

test("a container on internal networks alone gets nothing of the local network", async () => {
  const { status, answer } = await dig(dark, "printer.local");
  assert.deepEqual([status, answer], ["SERVFAIL", []]);
  const { causes } = await instance.client.explain({ container: "dark", name: "printer.local", type: "A" });
  assert.equal(causes[0]?.code, "internal-network");
});

test("a server that the settings or a label name for the domain is asked instead, also below it", async () => {
  const label = { "io.dns11.dns": "/local/127.0.0.1" };
  await using own = await runContainer(engine, { name: "own", networks: ["shop"], labels: label });
  await waitFor("the container to be served", async () =>
    (await instance.container("own"))?.state === "attached" ? true : undefined,
  );
  await upstream.forget();
  assert.equal((await dig(own, "printer.local")).status === "SERVFAIL", true);
  assert.equal((await upstream.queriesFor("printer.local")).length, 0, "a container's loopback is its own");
  await reload("mdns: auto\ndns: [host, /corp.local/host]\n");
  assert.deepEqual(dataOf(await dig(app, "7.ok.test.corp.local")), []);
  assert.equal((await upstream.queriesFor("7.ok.test.corp.local")).length, 1);
  await resolves("printer.local", "A", LAN.machine);
  await reload("mdns: auto\ndns: [host, /local/host]\n");
  await upstream.forget();
  await dig(app, "printer.local");
  assert.equal((await upstream.queriesFor("printer.local")).length, 1);
  await reload("mdns: auto\n");
});

test(
  "a policy judges names of the local network, and their addresses",
  { skip: !existsSync("src/features/policy") },
  async () => {
    const policy = "policies:\n  lan:\n    for: [network=shop]\n    mode: enforce\n    allow:\n      - scanner.local\n";
    await reload(`mdns: auto\n${policy}      - 192.168.77.0/24\n`);
    await resolves("scanner.local", "A", "192.168.77.9");
    assert.equal((await dig(app, "printer.local")).status, "NXDOMAIN");
    // An allowed name may lead to private addresses only where these are allowed, too.
    await reload(`mdns: auto\n${policy}`);
    assert.equal((await dig(app, "scanner.local")).status, "NXDOMAIN");
    await reload("mdns: auto\n");
  },
);

test("a process that takes over resolves at once, by a port of its own", async () => {
  instance = await replaceDns11(engine, instance, { args: ["--config", config] });
  await resolves("printer.local", "A", LAN.machine);
});

test("without a program that speaks mDNS names fail, and the cause, status and doctor say what to install", async () => {
  await avahi[Symbol.asyncDispose]();
  await instance.client.flushCache();
  assert.equal((await dig(app, "printer.local")).status, "SERVFAIL");
  const { causes } = await instance.client.explain({ container: "app", name: "printer.local", type: "A" });
  assert.equal(causes[0]?.code, "not-announced");
  assert.match(causes[0].sentence, /avahi-daemon does not run on this machine .*, and systemd-resolved does not run/);
  assert.match(causes[0].advice ?? "", /avahi-daemon/);
  assert.match(await command("status"), /names in local fail/);
  assert.match(await command("doctor", "app"), /names in local fail/);
  avahi = await startHostAvahi(engine, { hostName: "machine", links: [LINK, BRIDGE] });
  await resolves("printer.local", "A", LAN.machine);
});

test("while it is off the host's servers are asked, and the cause says what to set; a reload switches it on", async () => {
  await reload("mdns: off\n");
  await upstream.forget();
  const { status } = await dig(app, "nothing.local");
  assert.notEqual(status, "NOERROR");
  assert.equal((await upstream.queriesFor("nothing.local")).length, 1);
  const { causes } = await instance.client.explain({ container: "app", name: "nothing.local", type: "A" });
  assert.equal(causes[0]?.code, "not-announced");
  assert.match(causes[0].advice ?? "", /^set mdns: auto/);
  assert.equal((await instance.status()).mdns, null);
  await reload("mdns: avahi\n");
  await resolves("printer.local", "A", LAN.machine);
});
