/**
 * Containers on the default bridge that would have what steps of builds get, and a step that would be a container. What counts is the link:
 * only one that is no container's, and that Docker lists as a step's, from the step's own address.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { LISTENER_ADDRESSES } from "../../../src/base/model/listener-addresses.ts";
import { type RunningStep, startStep } from "../../support/engine/build.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { type Dns11, startDns11 } from "../../support/program/dns11.ts";
import { stdoutOf } from "../../support/program/command.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { Netns, type NetworkContext } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";

const { ipv4: LISTENER } = LISTENER_ADDRESSES;
const AT = `@${LISTENER}`;
const FORGER = fileURLToPath(new URL("../../support/packets/forged-queries-main.js", import.meta.url));
/** A question that must not be answered ends with a timeout. */
const SOON = ["+time=2", "+tries=1"];

let engine: Engine;
let upstream: Upstream;
let db: Container;
/** On the default bridge. */
let plain: Container;
let instance: Dns11;

before(async () => {
  engine = await startEngine({ daemonJson: { dns: [LISTENER] } });
  upstream = await startUpstream(engine);
  await createNetwork(engine, "shop");
  db = await runContainer(engine, { name: "db", networks: ["shop"] });
  plain = await runContainer(engine, { name: "plain" });
  instance = await startDns11(engine, { settings: { listener: "true", builds: "shop" } });
  await waitFor("the listener", async () => {
    const { listener } = await instance.status();
    return listener?.state === "serving" && listener.askers === 2 ? true : undefined;
  });
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function steps(count: number): Promise<void> {
  await waitFor(`${count} steps`, async () =>
    (await instance.status()).listener?.builds?.steps === count ? true : undefined,
  );
}

async function ip(where: NetworkContext, ...words: string[]): Promise<string> {
  return stdoutOf(await where.enter("ip", words), `ip ${words.join(" ")}`);
}

async function ofBuilds(): Promise<number> {
  return (await instance.container("builds"))?.counters?.["queries"] ?? 0;
}

/** Asks from an address that is somebody else's, in which case nothing comes of it. */
async function asksInVain(where: NetworkContext, address: string, name: string): Promise<void> {
  const { status, raw } = await dig(where, AT, "-b", address, name, ...SOON);
  assert.equal(status, "", raw);
  assert.deepEqual(await upstream.queriesFor(name), []);
}

async function isAnswered(step: RunningStep): Promise<void> {
  assert.deepEqual(dataOf(await dig(step, AT, "db")), [db.address("shop")]);
}

test("a container that takes a step's address, with its MAC or without, gets nothing, and the step is answered on", async () => {
  await using step = await startStep(engine);
  await steps(1);
  await isAnswered(step);
  const countBefore = await ofBuilds();
  await ip(plain, "address", "add", `${step.address}/32`, "dev", "eth0");
  await asksInVain(plain, step.address, "stolen.ok.test");
  const [, mac = ""] = /link\/ether (\S+)/.exec(await ip(plain, "-o", "link", "show", "eth0")) ?? [];
  await ip(plain, "link", "set", "eth0", "address", step.mac);
  await asksInVain(plain, step.address, "stolen-with-mac.ok.test");
  await ip(plain, "link", "set", "eth0", "address", mac);
  await ip(plain, "address", "del", `${step.address}/32`, "dev", "eth0");
  assert.equal(await ofBuilds(), countBefore);
  assert.equal((await dig(plain, AT, "db")).answer.length, 0, "its own view has no such name");
  await waitFor("the step's ARP entry to be right again", async () =>
    (await dig(step, AT, "db", ...SOON)).status === "NOERROR" ? true : undefined,
  );
});

test("forged frames of a container with a step's address reach nobody", async () => {
  await using step = await startStep(engine);
  await steps(1);
  await dig(plain, AT, "plain");
  const [, index = "", mac = ""] =
    /^(\d+): .* link\/ether (\S+)/.exec(await ip(plain, "-o", "link", "show", "eth0")) ?? [];
  const [, gateway = ""] = /lladdr (\S+)/.exec(await ip(plain, "neigh", "show", "dev", "eth0")) ?? [];
  const countBefore = await ofBuilds();
  for (const source of [step.address, plain.address("bridge")]) {
    const args = [FORGER, index, mac, gateway, source, LISTENER, `from-${source}.ok.test`];
    stdoutOf(await plain.enter(process.execPath, args), "send forged queries");
  }
  // What was sent before it in the same way has arrived, if it arrives at all.
  assert.equal((await dig(plain, AT, "last.ok.test")).status, "NOERROR");
  const asked = (await upstream.queries()).map(({ name }) => name.toLowerCase());
  assert.ok(asked.includes(`plain.from-${plain.address("bridge")}.ok.test`), "its own address is let through");
  assert.deepEqual(
    asked.filter((name) => name.endsWith(`from-${step.address}.ok.test`)),
    [],
  );
  assert.equal(await ofBuilds(), countBefore);
});

test("a step that takes a container's address, or a free one, gets nothing with it", async () => {
  await using step = await startStep(engine);
  await steps(1);
  const own = plain.address("bridge");
  const subnet = own.split(".").slice(0, 3).join(".");
  for (const [number, address] of [own, `${subnet}.200`].entries()) {
    await ip(step, "address", "add", `${address}/32`, "dev", "eth0");
    await asksInVain(step, address, `taken-${number}.ok.test`);
    await ip(step, "address", "del", `${address}/32`, "dev", "eth0");
  }
  await isAnswered(step);
});

test("a link of nobody gets nothing, also with the MAC and the address of a step, and takes neither from it", async () => {
  await using step = await startStep(engine);
  await steps(1);
  await using place = await Netns.create();
  const peer = ["peer", "eth0", "netns", place.name];
  await ip(engine, "link", "add", "odd", "master", "docker0", "up", "type", "veth", ...peer);
  await ip(place, "link", "set", "eth0", "address", step.mac);
  await ip(place, "link", "set", "eth0", "up");
  await ip(place, "address", "add", `${step.address}/16`, "dev", "eth0");
  await ip(place, "route", "add", "default", "via", `${step.address.split(".").slice(0, 2).join(".")}.0.1`);
  await asksInVain(place, step.address, "odd.ok.test");
  assert.equal((await instance.status()).listener?.builds?.steps, 1);
  await ip(engine, "link", "del", "odd");
  await waitFor("the step to be answered", async () =>
    (await dig(step, AT, "db", ...SOON)).status === "NOERROR" ? true : undefined,
  );
});

test("a container that gets the address that a step had gets its own view", async () => {
  const address = await (async () => {
    await using step = await startStep(engine);
    await steps(1);
    await isAnswered(step);
    return step.address;
  })();
  await steps(0);
  const countBefore = await ofBuilds();
  const heir = await runContainer(engine, { name: "heir" });
  assert.equal(heir.address("bridge"), address, "Docker gives the lowest free address");
  const { status, answer } = await dig(heir, AT, "db.shop");
  assert.notEqual(status, "");
  assert.equal(answer.length, 0);
  assert.equal(await ofBuilds(), countBefore);
  await heir.remove();
});
