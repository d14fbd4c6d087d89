/**
 * Who may not ask at an address of the host, and who may and abuses it: strangers, forged sources, floods, connections without end, and
 * packets that are no queries. An answer never costs the machine whose address was forged more than a small multiple of the query.
 */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { LIMITS } from "../../../src/base/limits.ts";
import type { ListenReports } from "../../../src/api/listener.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { LAN_LIMITS } from "../../../src/features/lan/limits.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { stdoutOf } from "../../support/program/command.ts";
import { type Dns11, startDns11 } from "../../support/program/dns11.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { Netns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { connectByWire } from "../../support/rig/wire.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

const HOST = "192.168.77.10";
const AT = `@${HOST}`;
const FRIEND = "192.168.77.20";
const SOON = ["+time=2", "+tries=1"];
const FORGER = fileURLToPath(new URL("../../support/packets/forged-queries-main.js", import.meta.url));
const ASKER = fileURLToPath(new URL("../../support/client/many-streams-main.js", import.meta.url));

const folder = makeFolder("listen-hostile");
let engine: Engine;
let upstream: Upstream;
let wire: AsyncDisposable;
let friend: Netns;
let other: Netns;
let stranger: Netns;
let container: Container;
let instance: Dns11;

async function report(): Promise<ListenReports> {
  return (await instance.status()).listen ?? assert.fail("it is off");
}

async function refused(from: Netns | Container, ...args: string[]): Promise<void> {
  for (const transport of ["+notcp", "+tcp"]) {
    const { status, raw } = await dig(from, AT, transport, "web.docker", ...args, ...SOON);
    assert.equal(status, "", raw);
    assert.match(raw, /timed out|no servers could be reached/);
  }
}

before(async () => {
  engine = await startEngine();
  upstream = await startUpstream(engine);
  [friend, other, stranger] = await Promise.all([Netns.create(), Netns.create(), Netns.create()]);
  wire = await connectByWire(
    new Map([
      [engine.id, `${HOST}/24`],
      [friend.name, `${FRIEND}/24`],
      [other.name, "192.168.77.21/24"],
      [stranger.name, "192.168.77.200/24"],
    ]),
  );
  await createNetwork(engine, "n1");
  container = await runContainer(engine, { name: "web", networks: ["n1"], args: ["--publish", "8080:80"] });
  const config = join(folder, "dns11.yaml");
  const settings = [
    "version: 1",
    "listen:",
    "  lan:",
    `    address: ${HOST}`,
    "    allow: [192.168.77.0/25]",
    "    forward: true",
  ];
  writeFileSync(config, `${settings.join("\n")}\n`, { mode: 0o600 });
  instance = await startDns11(engine, { args: ["--config", config] });
  await waitFor("the address", async () =>
    (await report()).entries[0]?.addresses[0]?.state === "serving" ? true : undefined,
  );
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await wire[Symbol.asyncDispose]();
  for (const each of [friend, other, stranger]) await each[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

test("a machine that is not allowed gets no reply, and is counted", async () => {
  assert.deepEqual(dataOf(await dig(friend, AT, "web.docker")), [HOST]);
  const sooner = (await report()).dropped.source;
  await refused(stranger);
  assert.ok((await report()).dropped.source > sooner);
  assert.equal((await report()).entries[0]?.refused.source, 0, "the kernel has dropped it");
});

test("a container gets no reply, by whatever address it asks", async () => {
  const sooner = (await report()).dropped.link;
  await refused(container);
  stdoutOf(await container.enter("ip", ["address", "add", "192.168.77.30/32", "dev", "eth0"]), "ip address");
  await refused(container, "-b", "192.168.77.30");
  assert.ok((await report()).dropped.link > sooner);
});

test("a container that forges the address of another machine has nothing sent there", async () => {
  const link = stdoutOf(await container.enter("ip", ["-o", "link", "show", "eth0"]), "ip link");
  const [, index = "", mac = ""] = /^(\d+): .* link\/ether (\S+)/.exec(link) ?? [];
  const neighbours = stdoutOf(await container.enter("ip", ["neigh", "show", "dev", "eth0"]), "ip neigh");
  const [, gateway = ""] = /lladdr (\S+)/.exec(neighbours) ?? [];
  const { queries = 0 } = (await report()).entries[0] ?? {};
  const args = [FORGER, index, mac, gateway, FRIEND, HOST, "forged.ok.test"];
  stdoutOf(await container.enter(process.execPath, args), "send forged queries");
  // What was sent before it has arrived, if it arrives at all.
  assert.equal((await dig(friend, AT, "after.ok.test")).status, "NOERROR");
  assert.equal((await report()).entries[0]?.queries, queries + 1);
  assert.deepEqual(
    (await upstream.queries()).filter(({ name }) => name.endsWith("forged.ok.test")),
    [],
  );
});

test("the sockets' own ports lead nobody past the rules", async () => {
  const listed = stdoutOf(await engine.enter("ss", ["-Huln", "src", HOST]), "ss");
  const [, port = ""] = new RegExp(`${HOST}:(\\d+) `).exec(listed) ?? assert.fail(listed);
  const sooner = (await report()).dropped.port;
  const { status, raw } = await dig(friend, AT, "-p", port, "web.docker", ...SOON);
  assert.equal(status, "", raw);
  assert.ok((await report()).dropped.port > sooner);
});

test("types and sizes that would amplify a forged query do not", async () => {
  for (const [name, type] of [
    ["big.big.test", "TXT"],
    ["big.oversize.test", "ANY"],
    ["x.rr.test", "DNSKEY"],
    ["x.ok.test", "ANY"],
    ["web.docker", "ANY"],
  ] as const) {
    const { size = 0, raw } = await dig(friend, AT, "+bufsize=65535", "+dnssec", "+ignore", "+notcp", name, type);
    assert.ok(size > 0 && size <= LIMITS.lanUdpBytes, `${name} ${type}: ${size} bytes: ${raw}`);
  }
});

test("a machine has its share of connections, and others have theirs", async () => {
  const max = LIMITS.lanSourceStreams;
  const opened = JSON.parse(
    stdoutOf(await friend.enter(process.execPath, [ASKER, HOST, String(max + 4)]), "open connections"),
  ) as { readonly open: number; readonly closed: number };
  assert.deepEqual(opened, { open: max, closed: 4 });
  assert.ok(((await report()).entries[0]?.refused.connections ?? 0) >= 4);
  assert.equal((await dig(other, AT, "+tcp", "web.docker")).status, "NOERROR");
  // Those of the first are closed by now.
  assert.equal((await dig(friend, AT, "+tcp", "web.docker")).status, "NOERROR");
});

test("packets that are no queries change nothing", async () => {
  const send =
    "for i in $(seq 300); do head -c $((RANDOM % 700 + 1)) /dev/urandom > /dev/udp/$0/53; done; head -c 70000 /dev/urandom > /dev/tcp/$0/53";
  await other.enter("bash", ["--norc", "-c", send, HOST]);
  assert.deepEqual(dataOf(await dig(other, AT, "+time=5", "+tries=5", "web.docker")), [HOST]);
  assert.ok(instance.isRunning);
  assert.deepEqual((await instance.status()).keeper.restarts, 0);
});

// The last: what the machine sends afterwards is beyond its limit for a moment.
test("a flood of one machine leaves the answers to others", async () => {
  const flood = "exec 3>/dev/udp/$0/53; while :; do for i in 1 2 3 4 5 6 7 8 9; do printf '%0100d' 0 >&3; done; done";
  const sooner = await report();
  const received = sooner.entries[0]?.queries ?? 0;
  const startMs = performance.now();
  const ends = friend.enter("timeout", ["8", "bash", "--norc", "-c", flood, HOST]);
  let answered = 0;
  for (let asked = 0; asked < 20; asked++) {
    if ((await dig(other, AT, "web.docker", "+time=5", "+tries=1")).status === "NOERROR") answered++;
  }
  await ends;
  assert.equal(answered, 20);
  const seconds = (performance.now() - startMs) / 1000;
  const now = await report();
  const more = (now.entries[0]?.queries ?? 0) - received;
  assert.ok(more <= LAN_LIMITS.packetsBurst + seconds * LAN_LIMITS.packetsPerSecond + 20, `${more} packets`);
  assert.ok(now.dropped.rate > sooner.dropped.rate);
});
