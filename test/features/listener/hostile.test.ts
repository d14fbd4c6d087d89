/**
 * Containers that pretend to be others before the listener on the host. They have CAP_NET_RAW, as Docker gives it to all: they
 * send frames with any source address. Only what comes by a container's own link, from its own address, is answered.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { LISTENER_ADDRESSES } from "../../../src/base/model/listener-addresses.ts";
import { LISTENER_LIMITS } from "../../../src/features/listener/limits.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { type Dns11, startDns11 } from "../../support/program/dns11.ts";
import { stdoutOf } from "../../support/program/command.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { Netns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";

const { ipv4: LISTENER, ipv6: LISTENER6 } = LISTENER_ADDRESSES;
const AT = `@${LISTENER}`;
const FORGER = fileURLToPath(new URL("../../support/packets/forged-queries-main.js", import.meta.url));
const FORMS = ["plain", "tag", "tags", "service"];

let engine: Engine;
let upstream: Upstream;
let victim: Container;
let neighbour: Container;
let stranger: Container;
let instance: Dns11;
let rounds = 0;

before(async () => {
  engine = await startEngine();
  upstream = await startUpstream(engine);
  await createNetwork(engine, "n1", { ipv6: true });
  await createNetwork(engine, "n2");
  victim = await runContainer(engine, { name: "victim", networks: ["n1"] });
  neighbour = await runContainer(engine, { name: "neighbour", networks: ["n1"] });
  stranger = await runContainer(engine, { name: "stranger", networks: ["n2"] });
  instance = await startDns11(engine, { settings: { listener: "true" } });
  await untilAskers(3);
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function untilAskers(count: number): Promise<void> {
  await waitFor(`${count} askers`, async () => {
    const { listener } = await instance.status();
    return listener?.state === "serving" && listener.askers === count ? true : undefined;
  });
}

/** The packets that reached dns11. */
async function receivedFrom(name: string): Promise<number> {
  const { queries = 0 } = (await instance.container(name))?.counters ?? {};
  return queries;
}

/** Sends forged queries from a container, and returns the forms in which they reached the upstream server. */
async function forge(from: Container, source: string): Promise<string[]> {
  const name = `round-${(rounds += 1)}.ok.test`;
  const link = await linkOf(from);
  const gateway = await gatewayOf(from);
  const args = [FORGER, link.index, link.mac, gateway, source, LISTENER, name];
  stdoutOf(await from.enter(process.execPath, args), "send forged queries");
  // What was sent before it in the same way has arrived, if it arrives at all.
  for (const last of ["a", "b"]) assert.equal((await dig(from, AT, `${last}.${name}`)).status, "NOERROR");
  const asked = new Set((await upstream.queries()).map((each) => each.name.toLowerCase()));
  return FORMS.filter((form) => asked.has(`${form}.${name}`));
}

async function linkOf(container: Container): Promise<{ index: string; mac: string }> {
  const text = stdoutOf(await container.enter("ip", ["-o", "link", "show", "eth0"]), "ip link");
  const [, index = "", mac = ""] = /^(\d+): .* link\/ether (\S+)/.exec(text) ?? [];
  return { index, mac };
}

async function networkId(name: string): Promise<string> {
  return ((await engine.api(`/networks/${name}`)) as { Id: string }).Id;
}

async function ipv6Of(container: Container): Promise<string> {
  const { NetworkSettings } = await container.inspect();
  return NetworkSettings.Networks["n1"]?.GlobalIPv6Address ?? assert.fail("no IPv6 address");
}

async function gatewayOf(container: Container): Promise<string> {
  await dig(container, AT, "neighbour");
  const text = stdoutOf(await container.enter("ip", ["neigh", "show", "dev", "eth0"]), "ip neigh");
  return /lladdr (\S+)/.exec(text)?.[1] ?? assert.fail(text);
}

test("frames with the address of a neighbour, or of a container of another network, reach nobody, in no VLAN tag", async () => {
  const own = await forge(neighbour, neighbour.address("n1"));
  assert.ok(own.includes("plain"), "its own address is let through, so the frames are sound");
  assert.deepEqual(await forge(neighbour, victim.address("n1")), []);
  assert.deepEqual(await forge(neighbour, stranger.address("n2")), []);
  assert.deepEqual(await forge(stranger, victim.address("n1")), []);
  assert.deepEqual(await forge(stranger, "127.0.0.1"), []);
  assert.equal((await instance.container("victim"))?.counters?.["queries"], 0);
});

test("an address that a container gives itself gets nothing", async () => {
  const taken = "172.31.255.9";
  stdoutOf(await neighbour.enter("ip", ["address", "add", `${taken}/32`, "dev", "eth0"]), "ip address");
  const { status, raw } = await dig(neighbour, AT, "-b", taken, "victim", "+time=2", "+tries=1");
  assert.equal(status, "", raw);
  const { raw: victims } = await dig(neighbour, AT, "-b", taken, "+tcp", "victim", "+time=2", "+tries=1");
  assert.match(victims, /timed out|no servers could be reached/);
});

test("a neighbour that takes a container's IPv6 address, and its IPv4 address, asks in nobody's name", async () => {
  const addresses = [victim.address("n1"), await ipv6Of(victim)];
  const sentBefore = (await instance.container("victim"))?.counters?.["queries"];
  for (const [index, address] of addresses.entries()) {
    const length = address.includes(":") ? "128" : "32";
    const nodad = length === "128" ? ["nodad"] : [];
    const own = ["address", "add", `${address}/${length}`, "dev", "eth0", ...nodad];
    stdoutOf(await neighbour.enter("ip", own), "ip address");
    const at = length === "128" ? `@${LISTENER6}` : AT;
    const { status, raw } = await dig(neighbour, at, "-b", address, `stolen-${index}.ok.test`, "+time=2", "+tries=1");
    assert.equal(status, "", raw);
    assert.deepEqual(await upstream.queriesFor(`stolen-${index}.ok.test`), []);
    stdoutOf(await neighbour.enter("ip", own.map((word) => (word === "add" ? "del" : word)).slice(0, 5)), "ip address");
  }
  assert.equal((await dig(neighbour, `@${LISTENER6}`, "neighbour", "AAAA")).status, "NOERROR", "IPv6 gets there");
  assert.equal((await instance.container("victim"))?.counters?.["queries"], sentBefore);
});

test("a link of the bridge that is no container's waits, and gets nothing, with whatever address", async () => {
  const bridge = `br-${(await networkId("n1")).slice(0, 12)}`;
  await using place = await Netns.create();
  stdoutOf(
    await engine.enter("ip", [
      "link",
      "add",
      "odd",
      "master",
      bridge,
      "up",
      "type",
      "veth",
      "peer",
      "eth0",
      "netns",
      place.name,
    ]),
    "ip link",
  );
  const subnet = victim.address("n1").split(".").slice(0, 3).join(".");
  for (const words of [
    ["link", "set", "eth0", "up"],
    ["address", "add", `${subnet}.200/16`, "dev", "eth0"],
    ["address", "add", `${victim.address("n1")}/16`, "dev", "eth0"],
    ["route", "add", "default", "via", `${subnet}.1`],
  ])
    stdoutOf(await place.enter("ip", words), words.join(" "));
  for (const [index, address] of [`${subnet}.200`, victim.address("n1")].entries()) {
    const { status, raw } = await dig(place, AT, "-b", address, `odd-${index}.ok.test`, "+time=2", "+tries=1");
    assert.equal(status, "", raw);
    assert.deepEqual(await upstream.queriesFor(`odd-${index}.ok.test`), []);
  }
});

test("a container that gets the address of one that is gone gets its own view", async () => {
  const address = victim.address("n1");
  assert.deepEqual(dataOf(await dig(victim, AT, "victim")), [address]);
  await victim.remove();
  await untilAskers(2);
  const heir = await runContainer(engine, { name: "heir", networks: [{ name: "n1", ip: undefined }] });
  await untilAskers(3);
  assert.equal(heir.address("n1"), address, "Docker gives the lowest free address");
  assert.deepEqual(dataOf(await dig(heir, AT, "heir")), [address]);
  assert.equal((await dig(heir, AT, "victim")).answer.length, 0);
  assert.equal((await instance.container("heir"))?.counters?.["queries"], 2);
});

test("a flood of one container leaves the answers to others", async () => {
  const flood = "exec 3>/dev/udp/$0/53; while :; do for i in 1 2 3 4 5 6 7 8 9; do printf '%0100d' 0 >&3; done; done";
  const receivedBefore = await receivedFrom("neighbour");
  const startMs = performance.now();
  const ends = neighbour.enter("timeout", ["8", "bash", "--norc", "-c", flood, LISTENER]);
  let answered = 0;
  for (let asked = 0; asked < 20; asked++) {
    if ((await dig(stranger, AT, "stranger", "+time=5", "+tries=1")).status === "NOERROR") answered++;
  }
  await ends;
  assert.equal(answered, 20);
  const received = (await receivedFrom("neighbour")) - receivedBefore;
  const seconds = (performance.now() - startMs) / 1000;
  assert.ok(received > 0);
  assert.ok(
    received <= LISTENER_LIMITS.packetsBurst + seconds * LISTENER_LIMITS.packetsPerSecond,
    `${received} packets`,
  );
});
