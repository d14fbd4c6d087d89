/**
 * A container whose list of servers cannot be determined has its queries forwarded by Docker's own resolver. Where that one fails, as
 * Docker 29.1.0's does for every name outside, the host's servers are asked: for names with a dot, in containers that reach outside. A
 * server that a rule puts in the place of Docker's resolver, for what dns11 asks it, plays the broken one.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, WITHOUT_KEEPER, dns11, startDns11 } from "../support/program/dns11.ts";
import { stdoutOf } from "../support/program/command.ts";
import { type ScriptedServers, startScripted } from "../support/scripted/scripted.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

const BROKEN = "127.1.0.1";
const HOST = "host(127.0.0.1)";
/** dns11's own queries alone have a mark. */
const RULES = `table ip broken {
  chain query {
    type nat hook output priority -150;
    meta mark != 0 ip daddr 127.0.0.11 udp dport 53 dnat to ${BROKEN}:53
    meta mark != 0 ip daddr 127.0.0.11 tcp dport 53 dnat to ${BROKEN}:53
  }
}
`;

let engine: Engine;
let upstream: Upstream;
let app: Container;
let dark: Container;
let web: Container;
let broken: ScriptedServers;
let brokenDark: ScriptedServers;

before(async () => {
  engine = await startEngine();
  upstream = await startUpstream(engine);
  await createNetwork(engine, "shop");
  await createNetwork(engine, "inside", { internal: true });
  app = await runContainer(engine, { name: "app", networks: ["shop"] });
  dark = await runContainer(engine, { name: "dark", networks: ["inside"] });
  web = await runContainer(engine, { name: "web", networks: [{ name: "shop", aliases: ["web.example.test"] }] });
  for (const each of [app, dark]) {
    // Without the comments in which Docker says which servers it uses.
    stdoutOf(await each.exec("sh", ["-c", "echo nameserver 127.0.0.11 > /etc/resolv.conf"]), "resolv.conf");
    stdoutOf(await each.enter("nft", ["-f", "-"], { input: RULES }), "nft");
  }
  broken = await startScripted(app, "servfail", { addresses: [BROKEN] });
  brokenDark = await startScripted(dark, "servfail", { addresses: [BROKEN] });
});
after(async () => {
  for (const each of [broken, brokenDark, upstream, engine]) await each[Symbol.asyncDispose]();
});

async function start(...args: string[]): Promise<Dns11> {
  await upstream.forget();
  await broken.play("servfail");
  return await startDns11(engine, { args, env: WITHOUT_KEEPER });
}

async function asked(name: string): Promise<number> {
  return (await broken.queries()).filter((each) => (each.name || ".") === name).length;
}

test("where Docker's resolver fails, a name outside comes from the host's servers, and is cached briefly", async () => {
  await using _ = await start();
  const reply = await dig(app, "7.ok.test");
  assert.deepEqual([reply.status, dataOf(reply)], ["NOERROR", ["192.0.2.7"]]);
  const [{ ttl } = { ttl: -1 }] = reply.answer;
  assert.ok(ttl >= 0 && ttl <= 30, String(ttl));
  assert.ok((await asked("7.ok.test")) > 0, "Docker's resolver is asked first");
  assert.deepEqual(dataOf(await dig(app, "+tcp", "8.ok.test")), ["192.0.2.8"]);
  await broken.play("refused");
  assert.deepEqual(dataOf(await dig(app, "9.ok.test")), ["192.0.2.9"]);
  await broken.play("closed");
  assert.deepEqual(dataOf(await dig(app, "10.ok.test")), ["192.0.2.10"]);
  assert.equal((await dig(app, "x.nx.test")).status, "NXDOMAIN");
  assert.equal((await dig(app, "x.servfail.test")).status, "SERVFAIL");
});

test("names without a dot, and those of containers, stay here", async () => {
  await using _ = await start();
  for (const [name, type] of [
    ["nobody", "A"],
    ["nobody", "TXT"],
    ["web.example.test", "TXT"],
    [".", "NS"],
  ] as const) {
    assert.equal((await dig(app, name, type)).status, "SERVFAIL", `${name} ${type}`);
    // Again at once: a query that is in flight twice has its servers checked for a loop.
    await Promise.all([dig(app, name, type), dig(app, name, type)]);
    assert.ok((await asked(name)) > 0, name);
  }
  assert.deepEqual(await upstream.queries(), []);
  assert.deepEqual(dataOf(await dig(app, "web.example.test")), [web.address("shop")]);
});

test("a container on internal networks alone gets no way out", async () => {
  await using _ = await start();
  assert.equal((await dig(dark, "7.ok.test")).status, "SERVFAIL");
  assert.ok((await brokenDark.queries()).some(({ name }) => name === "7.ok.test"));
  assert.deepEqual(await upstream.queries(), []);
});

test("explain and doctor say that Docker's resolver is broken, and what to do", async () => {
  await using instance = await start();
  const { causes } = await instance.client.explain({ container: "app", name: "11.ok.test", type: "A" });
  assert.equal(causes[0]?.code, "docker-broken");
  assert.match(causes[0].sentence, /Docker's resolver is broken: it answers SERVFAIL for "11\.ok\.test" in app/);
  assert.ok(causes[0].sentence.includes(HOST));
  assert.match(causes[0].advice ?? "", /29\.1\.0/);
  const { stdout } = await dns11(["doctor", "app", "-H", engine.host, "--state-dir", instance.stateDir]);
  assert.match(stdout, /Docker's resolver is broken/);
  assert.match(stdout, /systemctl restart docker/);
});

test("one that answers, or says that a name does not exist, has the last word; so has one that is silent", async () => {
  await using instance = await start();
  await broken.play("ok");
  assert.deepEqual(dataOf(await dig(app, "7.ok.test")), ["192.0.2.1"]);
  await broken.play("nxdomain");
  assert.equal((await dig(app, "8.ok.test")).status, "NXDOMAIN");
  await broken.play("formerr");
  assert.equal((await dig(app, "9.ok.test")).status, "FORMERR");
  await broken.play("silent");
  assert.equal((await dig(app, "10.ok.test")).status, "SERVFAIL");
  assert.deepEqual(await upstream.queries(), []);
  const { causes } = await instance.client.explain({ container: "app", name: "10.ok.test", type: "A" });
  assert.notEqual(causes[0]?.code, "docker-broken");
});

test("in strict mode the failure of Docker's resolver is the answer, as in Docker", async () => {
  await using _ = await start("--strict");
  assert.equal((await dig(app, "7.ok.test")).status, "SERVFAIL");
  assert.deepEqual(await upstream.queries(), []);
});
