/**
 * Servers that are told which container asks: BIND logs it, and a server that answers each by its address is never answered for another
 * one, whatever is in flight or cached, and wherever answers come from.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { SharedDns11 } from "../../support/program/shared-dns11.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type RealServer, startBind } from "../../support/servers/real-server.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const BIND = "10.53.0.1";
const FILTER = "10.53.0.2";
const OTHER = "10.53.0.3";
const WEB = "172.30.0.10";
const DB = "172.30.0.11";
const LIE = "10.9.9.9";
/** Codes of options. */
const CLIENT_SUBNET = 8;
const ZONE = `@ 300 IN SOA ns.test. admin.test. 1 7200 3600 1209600 30
@ IN NS ns
ns IN A 192.0.2.53
* IN A 192.0.2.2
`;

const folder = makeFolder("asker");
let engine: Engine;
let bind: RealServer;
let filter: Upstream;
let other: Upstream;
let web: Container;
let db: Container;
const shared = new SharedDns11(() => engine);

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${BIND}\n` });
  writeFileSync(join(folder, "zone"), ZONE, { mode: 0o644 });
  bind = await startBind(engine, { address: BIND, lines: [`zone test { type primary; file "${folder}/zone"; };`] });
  filter = await startUpstream(engine, { address: FILTER });
  other = await startUpstream(engine, { address: OTHER });
  await createNetwork(engine, "n1", { subnet: "172.30.0.0/24" });
  web = await runContainer(engine, { name: "web", networks: [{ name: "n1", ip: WEB }] });
  db = await runContainer(engine, { name: "db", networks: [{ name: "n1", ip: DB }] });
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  for (const server of [bind, filter, other]) await server[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** What BIND has logged of queries for a name, each once: the address that it was told, or "-". On a busy machine it is asked again. */
function logged(name: string): string[] {
  const lines = bind.log.split("\n").filter((line) => line.includes(`query: ${name} IN `));
  return [...new Set(lines.map((line) => /\[ECS ([^\]]+)\]/.exec(line)?.[1] ?? "-"))];
}

/** What a server was told with the queries for a name, each once: the data of the options, or "". */
async function toldWith(server: Upstream, name: string): Promise<string[]> {
  const queries = await server.queriesFor(name);
  const told = queries.map(
    ({ opt }) => opt?.options.flatMap(({ code, data }) => (code === CLIENT_SUBNET ? data : [])).join(" ") ?? "",
  );
  return [...new Set(told)];
}

function subnet(address: string): string {
  return `00012000${Buffer.from(address.split(".").map(Number)).toString("hex")}`;
}

test("BIND logs no container unless it is named; a reload has it told, by UDP and TCP", async () => {
  await shared.under();
  await dig(web, "off.test");
  assert.deepEqual(logged("off.test"), ["-"]);
  const instance = await shared.under(`client-subnet: [${BIND}]`);
  assert.deepEqual(dataOf(await dig(web, "on.test")), ["192.0.2.2"]);
  assert.deepEqual(logged("on.test"), [`${WEB}/32/0`]);
  assert.deepEqual(dataOf(await dig(db, "on.test")), ["192.0.2.2"]);
  assert.deepEqual(logged("on.test"), [`${WEB}/32/0`, `${DB}/32/0`]);
  // Its own reply is cached for a container.
  const cached = (await instance.container("web"))?.counters?.["cached"] ?? 0;
  await dig(web, "on.test");
  assert.equal((await instance.container("web"))?.counters?.["cached"], cached + 1);
  await shared.under(`client-subnet: [${BIND}]`, "forward: {tcp: true}");
  assert.deepEqual(dataOf(await dig(web, "tcp.test", "+tcp")), ["192.0.2.2"]);
  assert.deepEqual(logged("tcp.test"), [`${WEB}/32/0`]);
  await shared.under();
  await dig(web, "again.test");
  assert.deepEqual(logged("again.test"), ["-"]);
});

test("what a container says of itself is never passed on, however it asks", async () => {
  await shared.under(`client-subnet: [${BIND}]`);
  const ways: readonly (readonly string[])[] = [
    [`+subnet=${LIE}/32`],
    [`+subnet=${LIE}/32`, "+norecurse"],
    [`+subnet=${LIE}/32`, "+tcp"],
    [`+subnet=${LIE}/32`, "+nsid", "+cookie"],
    [`+subnet=${LIE}/32`, "-y", "hmac-sha256:key:c2VjcmV0"],
    ["-y", "hmac-sha256:key:c2VjcmV0"],
    ["-t", "ANY"],
    ["-t", "AXFR"],
    ["+subnet=0/0"],
  ];
  for (const [index, way] of ways.entries()) {
    const { raw, status } = await dig(web, `lie${index}.test`, ...way);
    const expected = way.includes("AXFR") ? "" : "NOERROR";
    assert.equal(status, expected, raw);
    assert.doesNotMatch(raw, /CLIENT-SUBNET/);
    assert.deepEqual(logged(`lie${index}.test`), [`${WEB}/32/0`], way.join(" "));
  }
  assert.ok(!bind.log.includes(`ECS ${LIE}`));
  // A client without EDNS gets a reply without.
  const { raw, edns } = await dig(web, "plain.test", "+noedns", "+norecurse");
  assert.equal(edns, undefined, raw);
  assert.deepEqual(logged("plain.test"), [`${WEB}/32/0`]);
});

test("each container gets the answer of the server to itself: one after the other, cached, and by the kernel", async () => {
  const instance = await shared.under(`client-subnet: [${FILTER}]`, `dns: [${FILTER}]`);
  await instance.waitForKernel();
  const asked = Array.from({ length: 30 }, (_, index) => `n${index % 3}.asker.test`);
  const both = await Promise.all(
    [web, db].map(async (container) => {
      const replies = [];
      for (const name of asked) replies.push(dataOf(await dig(container, name)));
      return replies;
    }),
  );
  assert.deepEqual(both, [asked.map(() => [WEB]), asked.map(() => [DB])]);
  // Three names, two containers.
  for (const name of new Set(asked))
    assert.deepEqual((await toldWith(filter, name)).toSorted(), [subnet(WEB), subnet(DB)].toSorted());
  await waitFor("the kernel to repeat an answer", async () => {
    assert.deepEqual(dataOf(await dig(web, "n1.asker.test")), [WEB]);
    assert.deepEqual(dataOf(await dig(db, "n1.asker.test")), [DB]);
    const { containers } = await instance.status();
    return containers.every(({ counters }) => (counters?.["kernelCached"] ?? 0) > 0) ? true : undefined;
  });
  // The same again where nobody is told: one question, one answer.
  await shared.under(`dns: [${FILTER}]`);
  assert.deepEqual(dataOf(await dig(web, "m1.asker.test")), ["192.0.2.1"]);
  assert.deepEqual(dataOf(await dig(db, "m1.asker.test")), ["192.0.2.1"]);
  assert.deepEqual(await toldWith(filter, "m1.asker.test"), [""]);
  // What was cached for all is no answer any more once the server is told.
  await shared.under(`client-subnet: [${FILTER}]`, `dns: [${FILTER}]`);
  assert.deepEqual(dataOf(await dig(web, "m1.asker.test")), [WEB]);
});

test("two containers that ask the same at the same time are two queries", async () => {
  const instance = await shared.under(`client-subnet: [${FILTER}]`, `dns: [${FILTER}]`);
  const replies = [web, db].map((container) => dig(container, "same.held.test"));
  await waitFor("both queries", async () =>
    (await toldWith(filter, "same.held.test")).length >= 2 ? true : undefined,
  );
  filter.release();
  for (const { status } of await Promise.all(replies)) assert.equal(status, "NOERROR");
  const told = await toldWith(filter, "same.held.test");
  assert.deepEqual(told.toSorted(), [subnet(WEB), subnet(DB)].toSorted());
  assert.ok(instance.isRunning);
});

test("no other server of the list is told, whichever is asked first", async () => {
  const lists = [`[${FILTER}, ${OTHER}]`, `[${OTHER}, ${FILTER}]`];
  for (const [index, list] of lists.entries()) {
    await shared.under(`client-subnet: [${FILTER}]`, `dns: ${list}`, "forward: {order: parallel}");
    const names = [`both${index}.ok.test`, `both${index}.servfail.test`, `both${index}.silent.test`];
    for (const name of names) {
      await dig(web, name);
      const [told, untold] = [await toldWith(filter, name), await toldWith(other, name)];
      assert.ok(told.length > 0 && untold.length > 0);
      assert.deepEqual(told, [subnet(WEB)]);
      assert.deepEqual(untold, [""]);
    }
  }
});

test("a server that rejects EDNS or is silent is not asked by somebody else", async () => {
  await shared.under(`client-subnet: [${FILTER}]`, `dns: [${FILTER}]`);
  for (const name of ["a.noedns.test", "b.noedns.test", "quiet.silent.test", "c.asker.test"]) {
    await dig(web, name);
    assert.deepEqual(await toldWith(filter, name), [subnet(WEB)], name);
  }
  assert.deepEqual(dataOf(await dig(web, "c.asker.test")), [WEB]);
});

test("explain says that the server is told", async () => {
  const instance = await shared.under(`client-subnet: [${FILTER}]`, `dns: [${FILTER}]`);
  const { steps } = await instance.client.explain({ name: "explained.ok.test", container: "web" });
  assert.match(JSON.stringify(steps), /sent over udp: [^"]*, with the address of the container/);
});

test("a container that gets another address is told by that, and former answers are not its own", async () => {
  await shared.under(`client-subnet: [${FILTER}]`, `dns: [${FILTER}]`);
  const mover = await runContainer(engine, { name: "mover", networks: [{ name: "n1", ip: "172.30.0.20" }] });
  await shared.under(`client-subnet: [${FILTER}]`, `dns: [${FILTER}]`);
  assert.deepEqual(dataOf(await dig(mover, "moved.asker.test")), ["172.30.0.20"]);
  await createNetwork(engine, "n0", { subnet: "172.31.0.0/24" });
  await engine.docker("network", "connect", "--ip", "172.31.0.20", "n0", "mover");
  await engine.docker("network", "disconnect", "n1", "mover");
  await waitFor("its new address", async () =>
    dataOf(await dig(mover, "moved.asker.test"))[0] === "172.31.0.20" ? true : undefined,
  );
});

test("a process that takes over tells the same", async () => {
  await shared.stop();
  const settings = { "client-subnet": FILTER, dns: FILTER };
  await using first = await startDns11(engine, { settings });
  assert.deepEqual(dataOf(await dig(web, "take1.asker.test")), [WEB]);
  await using second = await replaceDns11(engine, first, { settings });
  assert.deepEqual(dataOf(await dig(web, "take2.asker.test")), [WEB]);
  assert.ok(second.isRunning);
});
