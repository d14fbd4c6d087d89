/**
 * Container names on a host where systemd-resolved is in charge: it asks dns11 through a link of dns11's own. Names
 * resolve for every program that asks it, by whatever way, exactly while dns11 runs, and other names always do.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type CommandResult, run, stdoutOf } from "../support/program/command.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { QueryLoop } from "../support/client/query-loop.ts";
import { Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
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
let config: string;

before(async () => {
  engine = await startEngine({ hasControlGroup: true, resolvConf: `nameserver ${STUB}\n` });
  upstream = await startUpstream(engine, { address: UPSTREAM });
  bus = await startSystemBus(engine);
  await createNetwork(engine, "n1", { subnet: "172.30.16.0/20" });
  await createNetwork(engine, "n2");
  const labels = {
    "io.dns11.project": "shop",
    "io.dns11.service": "front",
    "com.docker.compose.container-number": "1",
  };
  web = await runContainer(engine, { name: "web", labels, networks: ["n1"] });
  await runContainer(engine, { name: "other", networks: ["n2"] });
  resolved = await startResolved(engine, UPSTREAM, [], bus);
  config = join(engine.folder, "settings.yaml");
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
    assert.ok(text.includes(`${name}: ${address}`), text);
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

for (const signal of ["SIGTERM", "SIGKILL"] as const) {
  test(`${signal}: the link goes, other names resolve throughout, and names of the domain go upstream`, async () => {
    await using instance = await start();
    assert.match(await lookup("web.docker"), new RegExp(`^${address} `));
    await using loop = await QueryLoop.start(engine, { name: "a1.ok.test", server: STUB, perSecond: 100 });
    instance.kill(signal);
    await waitForNoLink();
    await assertOutside();
    await waitFor("the rules to go", async () =>
      (await engine.enter("nft", ["list", "tables"])).stdout.includes("dns11") ? undefined : true,
    );
    await upstream.forget();
    await waitFor("the name to be upstream's", async () =>
      (await stub("web.docker")).length === 0 ? true : undefined,
    );
    assert.equal(await lookup("web.docker"), "");
    assert.ok((await upstream.queriesFor("web.docker")).length > 0);
    await assertOutside();
    assert.deepEqual([...new Set((await loop.stop()).map(({ outcome }) => outcome))], ["NOERROR"]);
  });
}

test("names come back when systemd-resolved is restarted, and follow containers and networks", async () => {
  await using instance = await start();
  await resolved[Symbol.asyncDispose]();
  resolved = await startResolved(engine, UPSTREAM, [], bus);
  await waitFor("the name after the restart", async () =>
    (await stub("web.docker"))[0] === address ? true : undefined,
  );
  await assertOutside();
  await createNetwork(engine, "late", { subnet: "10.99.4.0/22" });
  await using late = await runContainer(engine, { name: "late-comer", networks: [{ name: "late", ip: "10.99.6.7" }] });
  await waitFor("the new name", async () =>
    (await lookup("late-comer.docker")).startsWith("10.99.6.7 ") ? true : undefined,
  );
  await waitFor("its reverse name", async () =>
    (await stub("-x", "10.99.6.7"))[0] === "late-comer.docker." ? true : undefined,
  );
  await late.remove();
  await waitFor("the name to go", async () => ((await lookup("late-comer.docker")) === "" ? true : undefined));
  assert.ok(instance.isRunning);
});

test("another process continues with the same names when dns11 is replaced", async () => {
  await using first = await start();
  const [link] = await links();
  await using second = new Dns11(engine.host, { stateDir: first.stateDir, args: ["--replace", "--host-names"] });
  await waitFor("the link of the new process alone", async () => {
    const now = await links();
    return now.length === 1 && now[0] !== link ? true : undefined;
  });
  assert.equal(await first.ended(), 0);
  await second.waitFor("host", "attached");
  await waitFor("the name", async () => ((await stub("web.docker"))[0] === address ? true : undefined));
  await assertOutside();
});

test("containers do not see the names of the host, though dns11 asks systemd-resolved for them", async () => {
  await using _ = await start();
  await upstream.forget();
  assert.deepEqual(dataOf(await dig(web, "a9.ok.test")), ["192.0.2.9"]);
  assert.equal((await dig(web, "other.docker")).status, "NXDOMAIN");
  const other = (await stub("other.docker"))[0] ?? "";
  assert.equal((await dig(web, "-x", other)).status, "NXDOMAIN");
  assert.deepEqual(dataOf(await dig(web, "-x", address)), ["web.n1."]);
  assert.deepEqual(await upstream.queriesFor("other.docker"), []);
});

test("status, explain and the doctor say which means serve the host, and why", async () => {
  await using instance = await start();
  const of = async (...words: string[]): Promise<string> => {
    const { stdout, stderr } = await dns11([...words, "-H", engine.host, "--state-dir", instance.stateDir]);
    return stdout + stderr;
  };
  assert.match(await of("status", "host"), /through systemd-resolved \(its stub is in \/etc\/resolv\.conf\)/);
  assert.match(await of("explain", "web.docker", "-v", "--in", "host"), /docker, through systemd-resolved/);
  assert.match(await of("doctor", "--all"), /names below "docker" resolve on this machine through systemd-resolved/);
});

test("names of a zone resolve for every program that asks systemd-resolved, one that another link has does not", async () => {
  stdoutOf(await engine.enter("ip", ["link", "add", "vpn1", "type", "bridge"]), "ip");
  stdoutOf(await bus.command("resolvectl", "domain", "vpn1", "~corp.test"), "resolvectl");
  writeFileSync(config, "version: 1\nhost-names: auto\nzone: [cluster.local, corp.test]\n");
  await using instance = await startDns11(engine, { args: ["--config", config] });
  const { warning = "", hostNames } = await instance.waitFor("host", "attached");
  assert.deepEqual(hostNames?.zones, ["cluster.local"]);
  assert.match(warning, /zone "corp\.test" does not resolve on the host: .*its link vpn1/);
  const name = "front.shop.svc.cluster.local";
  await waitFor("the zone at the stub", async () => ((await stub(name))[0] === address ? true : undefined));
  assert.match(await lookup(name), new RegExp(`^${address} `));
  assert.deepEqual(await stub("+tcp", name), [address]);
  assert.match(await lookup(address), /1\.front\.shop\.svc\.cluster\.local/);
  assert.deepEqual(await stub("web.docker"), [address]);
  writeFileSync(config, "version: 1\nhost-names: auto\n");
  stdoutOf(await dns11(["reload", "-H", engine.host, "--state-dir", instance.stateDir]), "reload");
  await waitFor("the zone to go", async () => ((await stub(name)).length === 0 ? true : undefined));
  assert.deepEqual(await stub("web.docker"), [address]);
  stdoutOf(await engine.enter("ip", ["link", "del", "vpn1"]), "ip");
  await assertOutside();
});

test("a second instance and another link with the domain are found, and nothing breaks", async () => {
  await using first = await start();
  await using second = await startDns11(engine, { args: ["--host-names"] });
  const { code } = await second.waitFor("host", "failed");
  assert.equal(code, "OWNED_ELSEWHERE");
  assert.deepEqual(await stub("web.docker"), [address]);
  assert.ok(first.isRunning);
  stdoutOf(await engine.enter("ip", ["link", "add", "vpn0", "type", "bridge"]), "ip");
  stdoutOf(await bus.command("resolvectl", "domain", "vpn0", "~box"), "resolvectl");
  await using third = await startDns11(engine, { args: ["--host-names", "--host-domain=box"] });
  const { reason = "" } = await third.waitFor("host", "skipped");
  assert.match(reason, /systemd-resolved already has the domain "box": its link vpn0\. Choose another domain/);
  stdoutOf(await engine.enter("ip", ["link", "del", "vpn0"]), "ip");
  await assertOutside();
});

test("without a TUN device the reason says what to do, and auto captures instead", async () => {
  stdoutOf(await onHost("mount", "--bind", "/dev/null", "/dev/net/tun"), "mount");
  try {
    writeFileSync(config, "version: 1\nhost-names: resolved\n");
    await using instance = await startDns11(engine, { args: ["--config", config] });
    const { reason = "" } = await instance.waitFor("host", "skipped");
    assert.match(reason, /Cannot make a network link for systemd-resolved.*Allow \/dev\/net\/tun/);
    await assertOutside();
    writeFileSync(config, "version: 1\nhost-names: auto\n");
    stdoutOf(await dns11(["reload", "-H", engine.host, "--state-dir", instance.stateDir]), "reload");
    await instance.waitFor("host", "attached");
    assert.match(await meansOf(instance), /^capture: Cannot make a network link/);
    assert.deepEqual(await stub("web.docker"), [address]);
  } finally {
    stdoutOf(await onHost("umount", "/dev/net/tun"), "umount");
  }
});

test("where systemd-resolved does not run, the reason says so", async () => {
  await resolved[Symbol.asyncDispose]();
  await using instance = await startDns11(engine, { args: ["--host-names=resolved"] });
  const { reason = "" } = await instance.waitFor("host", "skipped");
  assert.match(reason, /systemd-resolved does not run on this host\. Start systemd-resolved, or use --host-names=auto/);
  resolved = await startResolved(engine, UPSTREAM, [], bus);
  await instance.waitFor("host", "attached");
  assert.match(await lookup("web.docker"), new RegExp(`^${address} `));
});
