/**
 * Names: what the default mode answers, through the redirect rules, queried with dig from inside containers. Strict mode is
 * compared with Docker in differential.test.ts.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig, digMany } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { waitFor } from "../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

let engine: Engine;
let upstream: Upstream;
let dns11: Dns11;
let web: Container;
let db: Container;
let linked: Container;

before(async () => {
  engine = await startEngine();
  upstream = await startUpstream(engine);
  await createNetwork(engine, "n1");
  await createNetwork(engine, "n2", { ipv6: true, subnet6: "fd11:2::/64" });
  await createNetwork(engine, "dark", { internal: true });
  await createNetwork(engine, "br.net1");
  web = await runContainer(engine, {
    name: "web",
    hostname: "hostA",
    networks: [{ name: "n1", aliases: ["Front", "shared"] }, { name: "n2" }],
  });
  db = await runContainer(engine, { name: "db", networks: [{ name: "n1", aliases: ["shared"] }, "n2"] });
  linked = await runContainer(engine, {
    name: "c1.net1",
    networks: [{ name: "n1", links: ["web:Backend", "nobody:db"] }, "br.net1"],
  });
  dns11 = await startDns11(engine);
});
after(async () => {
  await dns11[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

test("a container resolves by its name, aliases, short ID and hostname, in any letter case, with and without its network", async () => {
  const names = ["web", "WEB", "front", "hosta", "HOSTA", web.id.slice(0, 12), "web.n1", "Web.N1", "front.n1."];
  for (const name of names) assert.deepEqual(dataOf(await dig(linked, name)), [web.address("n1")], name);
});

test("for other address families and types, a container's name has an empty answer with an SOA of that name", async () => {
  for (const [name, type] of [
    ["c1.net1", "AAAA"],
    ["web", "TXT"],
    ["web", "HTTPS"],
    ["web.n1", "SRV"],
    ["web", "MX"],
  ] as const) {
    const reply = await dig(db, name, type);
    assert.equal(reply.status, "NOERROR", `${name} ${type}`);
    assert.deepEqual(reply.answer, []);
    assert.equal(reply.authority[0]?.name, `${name}.`);
    assert.equal(reply.authority[0]?.type, "SOA");
  }
});

test("a dotted container name is forwarded for other types, and an NXDOMAIN from upstream does not deny the name", async () => {
  await upstream.forget();
  const reply = await dig(db, "c1.net1", "CAA");
  assert.equal(reply.status, "NOERROR");
  assert.deepEqual(reply.answer, []);
  assert.deepEqual(new Set((await upstream.queries()).map(({ name }) => name)), new Set(["c1.net1"]));
});

test("an alias of several containers resolves to all of them, in random order", async () => {
  // All the same one less than once in 500 million runs.
  const replies = await digMany(
    linked,
    "127.0.0.11",
    Array.from({ length: 30 }, () => ["shared"]),
  );
  const orders = new Set(replies.map((reply) => dataOf(reply).join(" ")));
  const both = [web.address("n1"), db.address("n1")];
  assert.deepEqual(orders, new Set([both.join(" "), both.toReversed().join(" ")]));
});

test("the first network with the name answers: networks with more gateways come first, then the order of their names", async () => {
  assert.deepEqual(dataOf(await dig(db, "web")), [web.address("n2")], "n2 also has an IPv6 gateway");
  assert.deepEqual(dataOf(await dig(db, "web.n1")), [web.address("n1")]);
  assert.deepEqual(dataOf(await dig(db, "web.n2")), [web.address("n2")]);
  assert.deepEqual(dataOf(await dig(db, "web.n2", "AAAA")), [web.address6("n2")]);
});

test("reverse lookups return name and network, for IPv4 and IPv6, in any letter case", async () => {
  assert.deepEqual(dataOf(await dig(db, "-x", web.address("n1"))), ["web.n1."]);
  assert.deepEqual(dataOf(await dig(db, "-x", web.address6("n2"))), ["web.n2."]);
  const reverse = web.address("n1").split(".").toReversed().join(".");
  assert.deepEqual(dataOf(await dig(db, `${reverse}.IN-ADDR.arpa`, "PTR")), ["web.n1."]);
});

test("links are private names, in any letter case, and a dangling link does not hide a container's name", async () => {
  for (const name of ["Backend", "backend", "backend.n1"]) {
    assert.deepEqual(dataOf(await dig(linked, name)), [web.address("n1")], name);
  }
  assert.deepEqual(dataOf(await dig(linked, "db")), [db.address("n1")]);
  assert.equal((await dig(db, "backend.test")).status, "NXDOMAIN");
});

test("dotted container names on dotted networks resolve with and without the network, but not with a further suffix", async () => {
  assert.deepEqual(dataOf(await dig(linked, "c1.net1.br.net1")), [linked.address("br.net1")]);
  assert.deepEqual(dataOf(await dig(linked, "c1.net1")), [linked.address("br.net1")]);
  assert.equal((await dig(linked, "c1.net1.br.net1.nx.test")).status, "NXDOMAIN");
});

test("a client may send any number of queries on one TCP connection", async () => {
  const queries = Array.from({ length: 300 }, () => ["web", "+tcp", "+keepopen", "+tries=1"]);
  const replies = await digMany(linked, "127.0.0.11", queries);
  for (const reply of replies) assert.deepEqual(dataOf(reply), [web.address("n1")], reply.raw);
});

test("all other names are forwarded with their letter case, over UDP and TCP", async () => {
  await upstream.forget();
  assert.deepEqual(dataOf(await dig(db, "Mixed.ok.test")), ["192.0.2.1"]);
  assert.equal((await dig(db, "+tcp", "over.ok.test")).status, "NOERROR");
  // A query that a busy machine does not answer at once is sent again.
  assert.deepEqual([...new Set((await upstream.queries()).map(({ name }) => name))], ["Mixed.ok.test", "over.ok.test"]);
});

test("a container on an internal network resolves container names, but does not reach the host's servers", async () => {
  await using inside = await runContainer(engine, { name: "inside", networks: ["dark"] });
  await dns11.waitFor("inside", "attached");
  assert.deepEqual(dataOf(await dig(inside, "inside")), [inside.address("dark")]);
  await upstream.forget();
  const reply = await dig(inside, "a.ok.test");
  assert.equal(reply.status, "SERVFAIL");
  assert.deepEqual(await upstream.queries(), []);
  await inside.connect("n1");
  await waitFor("the host's servers", async () =>
    (await dig(inside, "a.ok.test")).status === "NOERROR" ? true : undefined,
  );
  assert.deepEqual(dataOf(await dig(inside, "a.ok.test")), ["192.0.2.1"]);
  await inside.disconnect("n1");
});

test("names follow changes of containers: pause, rename, disconnect, connect, stop, start", async () => {
  const job = await runContainer(engine, { name: "job", networks: ["n1"] });
  await dns11.waitFor("job", "attached");
  const lookUp = async (name: string): Promise<string[]> => dataOf(await dig(db, name));
  await engine.docker("pause", "job");
  assert.deepEqual(await lookUp("job"), [job.address("n1")], "paused");
  assert.deepEqual(
    dataOf(await dig(job, "web")),
    [web.address("n1")],
    "a paused container's namespace is still served",
  );
  await engine.docker("unpause", "job");
  await engine.docker("rename", "job", "task");
  await dns11.waitFor("task", "attached");
  assert.deepEqual(await lookUp("task"), [job.address("n1")], "renamed");
  assert.deepEqual(await lookUp("job.test"), []);
  assert.equal((await dig(db, "job.n1")).status, "NXDOMAIN", "the old name is gone");
  assert.deepEqual(dataOf(await dig(db, "-x", job.address("n1"))), ["task.n1."]);
  await job.connect({ name: "n2", aliases: ["extra"] });
  await waitFor("the new network", async () => ((await lookUp("extra.n2")).length > 0 ? true : undefined));
  assert.deepEqual(await lookUp("extra.n2"), [job.address("n2")], "connected");
  await job.disconnect("n2");
  await gone("extra.n2");
  await job.stop();
  await gone("task.n1");
  await job.start();
  await dns11.waitFor("task", "attached");
  assert.deepEqual(await lookUp("task"), [job.address("n1")], "started again");
  await job.remove();
  await gone("task.n1");
});

/** A removal takes a moment to be noticed. */
async function gone(name: string): Promise<void> {
  await waitFor(`${name} to be gone`, async () => ((await dig(db, name)).status === "NXDOMAIN" ? true : undefined));
}
