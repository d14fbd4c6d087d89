/**
 * Addresses of the host at which other machines of a LAN may ask: they get the containers with published ports, at the machine's own
 * address, and nothing is forwarded for them unless that is set.
 */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { ListenAddressReport } from "../../../src/api/listener.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { QueryLoop, failuresAfter } from "../../support/client/query-loop.ts";
import { createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { check, stdoutOf } from "../../support/program/command.ts";
import { type Dns11, dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { Netns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { connectByWire } from "../../support/rig/wire.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

const HOST = "192.168.77.10";
const HOST6 = "fd77::10";
const AT = `@${HOST}`;
const AT6 = `@${HOST6}`;
const PROJECT = "com.docker.compose.project";
const SERVICE = "com.docker.compose.service";
/** A question that must not be answered ends with a timeout; one that is lost on a busy machine looks the same. */
const SOON = ["+time=2", "+tries=1"];

const folder = makeFolder("listen");
const config = join(folder, "dns11.yaml");
let engine: Engine;
let upstream: Upstream;
let wire: AsyncDisposable;
let friend: Netns;
let instance: Dns11;

function write(...lines: readonly string[]): void {
  writeFileSync(config, ["version: 1", ...lines, ""].join("\n"), { mode: 0o600 });
}

const LAN = ["listen:", "  lan:", `    address: [${HOST}, "${HOST6}"]`, '    allow: [192.168.77.0/25, "fd77::/64"]'];
const NAMES = [
  "zone: cluster.local",
  "records:",
  "  printer.lan: 192.168.77.99",
  `  many.lan: [${Array.from({ length: 60 }, (_, index) => `10.9.8.${index + 1}`).join(", ")}]`,
];

async function address(change: "add" | "del", text: string): Promise<void> {
  await check("ip", [
    "-n",
    engine.id,
    "address",
    change,
    text,
    "dev",
    "wire0",
    ...(text.includes(":") ? ["nodad"] : []),
  ]);
}

async function states(): Promise<readonly ListenAddressReport[]> {
  const { listen } = await instance.status();
  return (listen?.entries ?? []).flatMap(({ addresses }) => addresses);
}

async function until(what: string, isSo: (all: readonly ListenAddressReport[]) => boolean): Promise<void> {
  await waitFor(what, async () => (isSo(await states()) ? true : undefined));
}

async function serving(count: number): Promise<void> {
  await until(`${count} addresses`, (all) => all.filter(({ state }) => state === "serving").length === count);
}

async function command(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await dns11([...args, "-H", engine.host, "--state-dir", instance.stateDir]);
  assert.equal(code, 0, stderr);
  return stdout;
}

before(async () => {
  engine = await startEngine();
  upstream = await startUpstream(engine);
  friend = await Netns.create();
  wire = await connectByWire(
    new Map([
      [engine.id, `${HOST}/24`],
      [friend.name, "192.168.77.20/24"],
    ]),
  );
  await address("add", `${HOST6}/64`);
  await check("ip", ["-n", friend.name, "address", "add", "fd77::20/64", "dev", "wire0", "nodad"]);
  await createNetwork(engine, "n1");
  const compose = (service: string): Readonly<Record<string, string>> => ({ [PROJECT]: "shop", [SERVICE]: service });
  await runContainer(engine, {
    name: "web",
    networks: ["n1"],
    labels: { ...compose("web"), "io.dns11.ports": "http=80" },
    args: ["--publish", "8080:80"],
  });
  await runContainer(engine, { name: "db", networks: ["n1"], labels: compose("db") });
  write(...NAMES, ...LAN);
  instance = await startDns11(engine, { args: ["--config", config] });
  await serving(2);
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await wire[Symbol.asyncDispose]();
  await friend[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

test("another machine gets a published container at the address of this one, by UDP, TCP, IPv4 and IPv6", async () => {
  for (const server of [AT, AT6]) {
    for (const transport of ["+notcp", "+tcp"]) {
      assert.deepEqual(dataOf(await dig(friend, server, transport, "web.docker")), [HOST], `${server} ${transport}`);
      assert.deepEqual(dataOf(await dig(friend, server, transport, "web.docker", "AAAA")), [HOST6]);
    }
  }
  assert.deepEqual(dataOf(await dig(friend, AT, "web.shop.docker")), [HOST], "the name of a Compose service");
  assert.equal((await dig(friend, AT, "db.docker")).status, "NXDOMAIN", "nobody outside reaches it");
  assert.deepEqual(dataOf(await dig(friend, AT, "printer.lan")), ["192.168.77.99"]);
});

test("names of zones lead to the machine, and SRV to the port that is published", async () => {
  assert.deepEqual(dataOf(await dig(friend, AT, "web-1.web.shop.svc.cluster.local")), []);
  const srv = await dig(friend, AT, "_http._tcp.web.shop.svc.cluster.local", "SRV");
  assert.match(dataOf(srv).join(), /^0 100 8080 \S+\.web\.shop\.svc\.cluster\.local\.$/);
  const [host = ""] = dataOf(srv).map((data) => data.split(" ").at(-1) ?? "");
  assert.deepEqual(dataOf(await dig(friend, AT, host)), [HOST]);
  assert.equal((await dig(friend, AT, "db.shop.svc.cluster.local")).status, "NXDOMAIN");
});

test("nothing is forwarded for another machine, whatever it asks for", async () => {
  for (const type of ["A", "ANY", "TXT", "DNSKEY", "MX", "PTR"]) {
    const { status, answer, flags } = await dig(friend, AT, `no-${type}.ok.test`, type);
    assert.deepEqual([status, answer.length, flags.has("ra")], ["REFUSED", 0, false], type);
    assert.deepEqual(await upstream.queriesFor(`no-${type}.ok.test`), []);
  }
  assert.equal((await dig(friend, AT, "-x", "192.0.2.1")).status, "REFUSED");
  assert.equal((await dig(friend, AT, "+tcp", "no-tcp.ok.test")).status, "REFUSED");
});

test("an answer by UDP is short, and its whole comes by TCP", async () => {
  const short = await dig(friend, AT, "+bufsize=4096", "+ignore", "many.lan");
  assert.ok(short.flags.has("tc") && (short.size ?? 0) <= 512, short.raw);
  const whole = await dig(friend, AT, "+bufsize=4096", "many.lan");
  assert.ok(whole.tcp);
  assert.equal(whole.answer.length, 60);
});

test("status, ps, tail, explain, failures and names know who asks", async () => {
  await dig(friend, AT, "web.docker");
  assert.match(
    await command("status"),
    /^listen lan +192\.168\.77\.10 and fd77::10: published, for 192\.168\.77\.0\/25, fd77::\/64$/m,
  );
  assert.match(await command("ps"), /^- +- +listen:lan +listener /m);
  assert.match(await command("tail", "listen:lan", "-n", "50"), /web\.docker/);
  assert.match(await command("explain", "web.docker", "--in", "listen:lan"), /192\.168\.77\.10/);
  assert.match(await command("explain", "x.ok.test", "--in", "listen:lan", "-v"), /forward is off/);
  assert.match(await command("failures", "listen:lan", "--all"), /nothing is forwarded for listen:lan/);
  assert.match(await command("names", "--in", "listen:lan"), /web\.docker/);
  assert.doesNotMatch(await command("names", "--in", "listen:lan"), /\bdb\.docker/);
  const { code, stderr } = await dns11([
    ...["lookup", "web.docker", "--in", "listen:lan"],
    ...["-H", engine.host, "--state-dir", instance.stateDir],
  ]);
  assert.notEqual(code, 0);
  assert.match(stderr, /stands for other machines/);
});

test("an address that goes is waited for, and serves again when it is back", async () => {
  await address("del", `${HOST6}/64`);
  await until("the address to be waited for", (all) => all.some(({ state }) => state === "waiting"));
  assert.match(
    (await states()).find(({ state }) => state === "waiting")?.reason ?? "",
    /does not have the address fd77::10/,
  );
  assert.deepEqual(dataOf(await dig(friend, AT, "web.docker")), [HOST]);
  await address("add", `${HOST6}/64`);
  await serving(2);
  assert.deepEqual(dataOf(await dig(friend, AT6, "web.docker")), [HOST]);
});

test("a program that takes port 53 keeps it, and is named", async () => {
  const other = await startUpstream(engine, { address: HOST });
  try {
    await until("the port to be taken", (all) => all.some(({ state }) => state === "failed"));
    const [first] = await states();
    assert.equal(first?.code, "LISTEN_PORT_TAKEN");
    assert.match(
      first.reason ?? "",
      /Port 53 of 192\.168\.77\.10 is taken: by another program, at 192\.168\.77\.10 \(udp and tcp\)/,
    );
    assert.equal((await dig(friend, AT, "taken.ok.test")).status, "NOERROR", "the other program answers");
    assert.deepEqual(dataOf(await dig(friend, AT6, "web.docker")), [HOST]);
  } finally {
    await other[Symbol.asyncDispose]();
  }
  await serving(2);
  assert.deepEqual(dataOf(await dig(friend, AT, "web.docker")), [HOST]);
});

test("a container that publishes port 53 keeps it, and is named", async () => {
  const resolver = await runContainer(engine, {
    name: "resolver",
    networks: ["n1"],
    args: ["--publish", `${HOST}:53:53/udp`],
  });
  await until("the port to be taken", (all) => all.some(({ state }) => state === "failed"));
  assert.match((await states())[0]?.reason ?? "", /by the container "resolver", which publishes it/);
  await resolver.remove();
  await serving(2);
});

test("a reload gives others the view of a network, and forwards for them if that is set", async () => {
  write(...NAMES, ...LAN, "    view: network=n2", "    forward: true");
  await instance.reload();
  await waitFor("the view", async () =>
    (await command("status")).includes("no running container is on a network") ? true : undefined,
  );
  assert.equal((await dig(friend, AT, "web.docker")).answer.length, 0);
  await createNetwork(engine, "n2");
  const app = await runContainer(engine, { name: "app", networks: ["n2"] });
  await waitFor("the network's names", async () =>
    dataOf(await dig(friend, AT, "app")).includes(app.address("n2")) ? true : undefined,
  );
  assert.doesNotMatch(await command("status"), /no running container is on/);
  assert.notEqual((await dig(friend, AT, "web")).status, "NOERROR", "a container of another network");
  assert.deepEqual(dataOf(await dig(friend, AT, "5.ok.test")), ["192.0.2.5"]);
  const big = await dig(friend, AT, "+bufsize=4096", "+ignore", "a.big.test", "TXT");
  assert.ok(big.flags.has("tc") && (big.size ?? 0) <= 512, big.raw);
  assert.ok(((await dig(friend, AT, "+tcp", "a.big.test", "TXT")).size ?? 0) > 512);
  await app.remove();
  write(...NAMES, ...LAN);
  await instance.reload();
  assert.equal((await dig(friend, AT, "6.ok.test")).status, "REFUSED");
  write(...NAMES);
  await instance.reload();
  assert.equal((await instance.status()).listen, null);
  await waitFor("the port to be closed", async () =>
    /connection refused/.test((await dig(friend, AT, "web.docker", ...SOON)).raw) ? true : undefined,
  );
  write(...NAMES, ...LAN);
  await instance.reload();
  await serving(2);
  assert.deepEqual(dataOf(await dig(friend, AT, "web.docker")), [HOST]);
});

test("containers on the default bridge get the names of a network at the bridge's own address", async () => {
  const plain = await runContainer(engine, { name: "plain" });
  const { NetworkSettings } = await plain.inspect();
  const bridge = NetworkSettings.Networks["bridge"]?.Gateway ?? assert.fail("no gateway");
  const block = bridge.replace(/\.\d+\.\d+$/, ".0.0/16");
  write(...NAMES, ...LAN, `  bridge: {address: ${bridge}, allow: [${block}], view: network=n1, forward: true}`);
  await instance.reload();
  await serving(3);
  const at = `@${bridge}`;
  assert.equal((await dig(plain, at, "db")).answer.length, 1);
  assert.deepEqual(dataOf(await dig(plain, at, "+tcp", "7.ok.test")), ["192.0.2.7"]);
  assert.equal((await dig(plain, AT, "web.docker", ...SOON)).status, "", "the address of the LAN is not for them");
  const other = await runContainer(engine, { name: "other", networks: ["n1"] });
  assert.equal((await dig(other, at, "db", ...SOON)).status, "", "nor that of another bridge");
  await plain.remove();
  await other.remove();
  write(...NAMES, ...LAN);
  await instance.reload();
  await serving(2);
});

test("a replacement loses no query; after a kill queries are refused at once, until the next start", async () => {
  await using loop = await QueryLoop.start(friend, { name: "web.docker", server: HOST, perSecond: 50 });
  instance = await replaceDns11(engine, instance, { args: ["--config", config] });
  await serving(2);
  assert.deepEqual(dataOf(await dig(friend, AT, "web.docker")), [HOST]);
  assert.deepEqual(failuresAfter(await loop.stop(), 0), [], instance.log);
  process.kill(instance.pid, "SIGKILL");
  await instance.ended();
  await waitFor("queries to be refused", async () =>
    /connection refused/.test((await dig(friend, AT, "web.docker", ...SOON)).raw) ? true : undefined,
  );
  const { stateDir } = instance;
  instance = await startDns11(engine, { args: ["--config", config], stateDir });
  await serving(2);
  assert.deepEqual(dataOf(await dig(friend, AT, "+tcp", "web.docker")), [HOST]);
  assert.equal(await instance.stop(), 0);
  // The kernel sends one machine only so many refusals in a second.
  await waitFor("queries to be refused", async () =>
    /connection refused/.test((await dig(friend, AT, "web.docker", ...SOON)).raw) ? true : undefined,
  );
  const rules = stdoutOf(await engine.enter("nft", ["list", "tables"]), "nft");
  assert.doesNotMatch(rules, /dns11/);
});
