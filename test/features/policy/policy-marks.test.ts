// Marks on packets, on a live engine: dns11's own queries reach Docker's resolver by one, and a container with Docker's default
// capabilities may set any (Linux 5.17). Here it is even told which.

import assert from "node:assert/strict";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { queryOf } from "../../../src/base/dns/query.ts";
import { labelsOf } from "../../../src/base/model/name-query.ts";
import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { exchange } from "../../../src/container/rules/exchange.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { ControlGroup } from "../../support/engine/control-group.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { createOverlay, createService, initSwarm } from "../../support/engine/swarm.ts";
import { type Dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

let engine: Engine;
let upstream: Upstream;
let instance: Dns11;
let one: Container;
let two: Container;
const runner = new NamespaceRunner();
const file = join(makeFolder("policy-marks"), "dns11.yaml");
const DENIED = "a7.ok.test";
const ANSWERED = Buffer.of(192, 0, 2, 7);
const A = 1;

const POLICY = `
policies:
  closed:
    for: [network=one]
    mode: enforce
    allow: [a1.ok.test, web, tasks.web]
`;

before(async () => {
  writeFileSync(file, "version: 1\n");
  engine = await startEngine({ liveRestore: false });
  upstream = await startUpstream(engine);
  for (const network of ["one", "two"]) await createNetwork(engine, network);
  one = await runContainer(engine, { name: "one", networks: ["one"] });
  two = await runContainer(engine, { name: "two", networks: ["two"] });
  instance = await startDns11(engine, { args: ["--config", file] });
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  runner.close();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

// The marks that our rules there name.
async function marksIn(container: Container): Promise<number[]> {
  const { stdout } = await container.enter("nft", ["list", "table", "ip", "dns11"]);
  return [...new Set([...stdout.matchAll(/meta mark (0x[0-9a-f]+)/g)].map(([, mark]) => Number(mark)))];
}

// Replies to a query with that mark, by UDP and TCP.
async function askWith(container: Container, mark: number, name: string): Promise<Buffer[]> {
  const fd = openSync(container.netnsPath, "r");
  try {
    const within = <T>(work: () => T): T => runner.within(fd, work);
    const message = (id: number): Buffer => queryOf({ labels: labelsOf(name), type: A, id });
    const legs = await exchange(within, { destination: "127.0.0.11", message, mark, waitMs: 3_000 });
    return legs.flatMap(({ reply }) => reply ?? []);
  } finally {
    closeSync(fd);
  }
}

// While rules are made anew there are two tables for a moment.
async function onlyMarkIn(container: Container): Promise<number> {
  return await waitFor("one mark", async () => {
    const [mark, ...others] = await marksIn(container);
    return others.length === 0 ? mark : undefined;
  });
}

async function settle(text: string): Promise<void> {
  writeFileSync(file, `version: 1\n${text}`);
  await instance.reload();
}

test("the mark of each namespace is another one, and the next process has it, too", async () => {
  const [first, second] = [await onlyMarkIn(one), await onlyMarkIn(two)];
  assert.notEqual(first, second);
  instance = await replaceDns11(engine, instance, { args: ["--config", file] });
  assert.equal(await onlyMarkIn(one), first);
  assert.equal(await onlyMarkIn(two), second);
});

test("while a policy is enforced, no mark leads to Docker's resolver", async () => {
  const mark = await onlyMarkIn(one);
  const open = await askWith(one, mark, DENIED);
  assert.equal(open.filter((reply) => reply.includes(ANSWERED)).length, 2, "without a policy it answers");
  const asked = (await upstream.queries()).length;
  await settle(POLICY);
  await waitFor("the rules", async () => ((await marksIn(one)).length === 0 ? true : undefined));
  const replies = await askWith(one, mark, `x.${DENIED}`);
  assert.deepEqual(
    replies.filter((reply) => reply.includes(ANSWERED)),
    [],
  );
  assert.equal((await dig(one, DENIED)).status, "NXDOMAIN");
  assert.deepEqual(dataOf(await dig(one, "a1.ok.test")), ["192.0.2.1"]);
  const since = (await upstream.queries()).slice(asked);
  assert.ok(!since.some(({ name }) => name.includes(DENIED)));
  await onlyMarkIn(two);
});

test("names that only Docker's resolver knows fail there, and do not where dns11 has a control group of its own", async () => {
  await initSwarm(engine);
  await createOverlay(engine, "mesh");
  await createService(engine, "web", { networks: ["mesh"] });
  const member = await runContainer(engine, { name: "member", networks: ["mesh"] });
  const answers = (name: string) => async (): Promise<true | undefined> =>
    (await dig(member, name)).status === "NOERROR" ? true : undefined;
  await waitFor("an answer", answers("web"));
  await settle(POLICY.replace("network=one", "network=mesh"));
  await waitFor("the rules", async () => ((await marksIn(member)).length === 0 ? true : undefined));
  assert.notEqual((await dig(member, "tasks.web")).status, "NOERROR");
  await instance[Symbol.asyncDispose]();
  // A keeper would refuse its queries on, in the group.
  writeFileSync(file, `version: 1\nkeeper: off\n${POLICY.replace("network=one", "network=mesh")}`);
  using group = new ControlGroup(`${engine.id}-dns11`);
  instance = await startDns11(engine, { args: ["--config", file], prefix: group.prefix });
  try {
    await waitFor("an answer again", answers("tasks.web"));
    const mark = await onlyMarkIn(member);
    assert.notEqual(mark, 0);
    const replies = await askWith(member, mark, DENIED);
    assert.ok(!replies.some((reply) => reply.includes(ANSWERED)), "the mark alone");
    assert.equal((await dig(member, DENIED)).status, "NXDOMAIN");
  } finally {
    await instance[Symbol.asyncDispose]();
  }
});
