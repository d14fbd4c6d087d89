/**
 * A client without EDNS that never asks again over TCP: musl before 1.2.4, a real one, in containers. What it finds of answers over 512
 * octets, from dns11 and from Docker's resolver; and that who does ask again gets all.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type DigReply, dataOf, dig } from "../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { check } from "../support/program/command.ts";
import { SharedDns11 } from "../support/program/shared-dns11.ts";
import { startDnsmasq } from "../support/servers/real-server.ts";

const SERVER = "10.53.0.1";
/** Its targets share no label, so each takes its full length. */
const LINKS = ["a", "b", "c", "d"].map((letter) => [1, 2, 3].map(() => letter.repeat(58)).join("."));
const FOUR = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
const SIX = ["2001:db8::1", "2001:db8::2"];
const MANY = Array.from({ length: 60 }, (_, index) => `198.51.100.${index + 1}`);
const PLAIN = ["+noedns"];
/** What the client gets that does not ask again. */
const ONCE = [...PLAIN, "+ignore"];

let engine: Engine;
let web: Container;
let left: Container;
let policed: Container;
const shared = new SharedDns11(() => engine);

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${SERVER}\n` });
  const names = ["start.test", ...LINKS];
  await startDnsmasq(engine, {
    address: SERVER,
    lines: [
      "local=/test/",
      "edns-packet-max=1232",
      "local-ttl=60",
      ...names.map((name, index) => `cname=${name},${names[index + 1] ?? "end.test"}`),
      ...FOUR.map((address) => `host-record=end.test,${address}`),
      ...SIX.map((address) => `host-record=end.test,${address}`),
      ...MANY.map((address) => `host-record=many.test,${address}`),
      "host-record=few.test,192.0.2.9",
    ],
  });
  const lookup = join(engine.folder, "lookup");
  await check("musl-gcc", ["-static", "-o", lookup, "test/support/client/lookup.c"]);
  await createNetwork(engine, "n1");
  const run = async (name: string, labels: Readonly<Record<string, string>> = {}): Promise<Container> => {
    const container = await runContainer(engine, { name, networks: ["n1"], labels });
    await engine.docker("cp", lookup, `${name}:/lookup`);
    return container;
  };
  web = await run("web");
  left = await run("left", { "io.dns11.enable": "false" });
  policed = await run("policed", { "io.dns11.policy": "outside" });
});
after(async () => {
  await shared[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

const POLICY = [
  "policies:",
  "  outside:",
  "    mode: enforce",
  `    allow: [${["start.test", "end.test", ...LINKS].join(", ")}]`,
];

/** The addresses that a program of musl finds. */
async function found(container: Container, name: string): Promise<string[]> {
  const { stdout } = await container.exec("/lookup", [name]);
  return stdout
    .split("\n")
    .filter((line) => /^[\d.]+$|:/.test(line) && !line.includes(" "))
    .toSorted();
}

function types({ answer }: DigReply): string[] {
  return [...new Set(answer.map(({ type }) => type))];
}

test("of a chain that leaves no room for an address, it finds none by Docker's resolver, and all by dns11", async () => {
  await shared.under(...POLICY);
  assert.deepEqual(await found(left, "few.test"), ["192.0.2.9"]);
  assert.deepEqual(await found(left, "start.test"), []);
  // From the server, and from the cache.
  for (const _ of [1, 2]) assert.deepEqual(await found(web, "start.test"), [...FOUR, ...SIX].toSorted());
});

test("of many addresses it finds those that fit, from both", async () => {
  await shared.under();
  for (const each of [left, web]) {
    const some = await found(each, "many.test");
    assert.ok(some.length > 10 && some.length < MANY.length, `${some.length} in ${each.name}`);
    assert.ok(some.every((address) => MANY.includes(address)));
  }
});

test("the reply is truncated: who asks again over TCP, or has EDNS, gets the chain and all addresses", async () => {
  await shared.under();
  const cut = await dig(web, "start.test", ...ONCE);
  assert.deepEqual([types(cut), cut.flags.has("tc"), dataOf(cut).toSorted()], [["A"], true, FOUR]);
  assert.ok(cut.answer.every(({ name }) => name === "start.test."));
  for (const more of [PLAIN, ["+bufsize=1232"]]) {
    const whole = await dig(web, "start.test", ...more);
    assert.deepEqual([types(whole), whole.flags.has("tc")], [["CNAME", "A"], false]);
    assert.deepEqual(dataOf(whole).slice(-FOUR.length).toSorted(), FOUR);
  }
  assert.deepEqual(types(await dig(web, "start.test", "MX", ...ONCE)), ["CNAME"]);
});

test("the kernel does not repeat it", async () => {
  const instance = await shared.with([], {}, { DNS11_ANSWERS: "kernel" });
  await instance.waitForKernel();
  for (let time = 0; time < 5; time++)
    assert.deepEqual(dataOf(await dig(web, "start.test", ...ONCE)).toSorted(), FOUR, `time ${time}`);
  assert.deepEqual(
    dataOf(await dig(web, "start.test", ...PLAIN))
      .slice(-FOUR.length)
      .toSorted(),
    FOUR,
  );
});

test("the same for a declared name that leads to such a chain", async () => {
  await shared.under("records:", "  declared.test: {cname: start.test}");
  for (const _ of [1, 2]) assert.deepEqual(await found(web, "declared.test"), [...FOUR, ...SIX].toSorted());
});

test("where a policy judges what aliases lead to, they stay", async () => {
  await shared.under(...POLICY);
  const cut = await dig(policed, "start.test", ...ONCE);
  assert.deepEqual([types(cut), cut.flags.has("tc")], [["CNAME"], true]);
  assert.deepEqual(
    dataOf(await dig(policed, "start.test", ...PLAIN))
      .slice(-FOUR.length)
      .toSorted(),
    FOUR,
  );
});

test("in the mode strict the answer is Docker's", async () => {
  await shared.under("strict: true");
  assert.deepEqual(await found(web, "start.test"), []);
  const [ours, docker] = [await dig(web, "start.test", ...ONCE), await dig(left, "start.test", ...ONCE)];
  assert.deepEqual(
    [types(ours), ours.flags.has("tc"), ours.size],
    [types(docker), docker.flags.has("tc"), docker.size],
  );
});
