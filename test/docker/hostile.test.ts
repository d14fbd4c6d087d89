/**
 * A container that means harm to dns11, or to others through it: garbage, connections that say nothing, names without end.
 * All the while its neighbour asks for a name, and gets every answer; and dns11's memory stays bounded.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { stdoutOf } from "../support/command.ts";
import { type Container, createNetwork, runContainer } from "../support/container.ts";
import { dataOf, dig } from "../support/dig.ts";
import { type Dns11, startDns11 } from "../support/dns11.ts";
import { type Engine, startEngine } from "../support/engine.ts";
import { failuresAfter, load } from "../support/load.ts";
import { startUnbound } from "../support/real-server.ts";

const HOSTILE = fileURLToPath(new URL("../support/hostile-main.js", import.meta.url));
const UPSTREAM = "10.53.0.1";
const ANY_NAME = ['local-zone: "." static', "local-zone: test. redirect", 'local-data: "test. 3600 A 192.0.2.1"'];
const GIGABYTE = 1e9;
const CONNECTIONS = 10_000;
/** Several times what the cache holds; the whole million takes a minute more, and no more memory. */
const RANDOM_NAMES = Number(process.env["RANDOM_NAMES"] ?? 300_000);
/** A hundred questions a second beside it, for as long as an attack takes on a slow machine. */
const PER_SECOND = 100;
const ATTACK_MS_MAX = 300_000;
/** What the cache may hold and what is yet to be collected of it, beside code, heap and buffers. */
const MEMORY_BYTES_MAX = 256 * 1024 * 1024;

let engine: Engine;
let upstream: AsyncDisposable;
let instance: Dns11;
let web: Container;
let hostile: Container;
let neighbour: Container;

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${UPSTREAM}\n` });
  upstream = await startUnbound(engine, { address: UPSTREAM, lines: ANY_NAME });
  await createNetwork(engine, "n1");
  web = await runContainer(engine, { name: "web", networks: ["n1"] });
  hostile = await runContainer(engine, { name: "hostile", networks: ["n1"] });
  neighbour = await runContainer(engine, { name: "neighbour", networks: ["n1"] });
  instance = await startDns11(engine);
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

test("a gigabyte of garbage, in datagrams and over TCP", async () => {
  const said = await whileOthersAsk(async () => await attack("garbage", String(GIGABYTE)));
  const { datagrams, streamed } = JSON.parse(said) as { datagrams: number; streamed: number };
  assert.ok(datagrams > 10_000 && streamed >= GIGABYTE / 2, said);
});

test("ten thousand connections that say nothing", async () => {
  const said = await whileOthersAsk(async () => await attack("idle", String(CONNECTIONS)));
  const { opened, refused, stillOpen } = JSON.parse(said) as Record<string, number>;
  assert.equal((opened ?? 0) + (refused ?? 0), CONNECTIONS, said);
  assert.ok((opened ?? 0) > 1_000, said);
  assert.ok((stillOpen ?? Infinity) < 1_000, `of a namespace's connections most were closed again: ${said}`);
  // Whoever asks in earnest finds room all the same, in this namespace too.
  assert.deepEqual(dataOf(await dig(hostile, "+tcp", "web")), [web.address("n1")]);
});

test("random names without end", async () => {
  const questions = join(engine.folder, "random");
  writeFileSync(questions, Array.from({ length: RANDOM_NAMES }, (_, index) => `r${index * 7919}.test A\n`).join(""));
  const said = await whileOthersAsk(async () => {
    const args = ["-s", "127.0.0.11", "-d", questions, "-n", "1", "-l", String(ATTACK_MS_MAX / 1000), "-q", "1000"];
    return stdoutOf(await hostile.enter("dnsperf", args, { timeoutMs: ATTACK_MS_MAX }), "dnsperf");
  });
  assert.match(said, new RegExp(`Queries sent: +${RANDOM_NAMES}`));
  const counters = (await instance.container("hostile"))?.counters;
  assert.ok((counters?.["forwarded"] ?? 0) > RANDOM_NAMES * 0.9, JSON.stringify(counters));
});

async function attack(...args: string[]): Promise<string> {
  const command = [HOSTILE, ...args];
  return stdoutOf(await hostile.enter(process.execPath, command, { timeoutMs: ATTACK_MS_MAX }), "hostile");
}

/** What the attack said. The neighbour asks until it is over, and loses nothing. */
async function whileOthersAsk(act: () => Promise<string>): Promise<string> {
  let isOver = false;
  const attacking = act().finally(() => (isOver = true));
  // Awaited below; it must not count as unhandled while others ask.
  attacking.catch(() => undefined);
  while (!isOver) {
    const report = await load(neighbour, { name: "web", perSecond: PER_SECOND, forMs: 2_000 });
    assert.ok(report.asked > PER_SECOND, "the neighbour really asked");
    assert.deepEqual(failuresAfter(report, 0), []);
    const { memoryBytes } = await instance.status();
    assert.ok(memoryBytes < MEMORY_BYTES_MAX, `${memoryBytes} bytes`);
  }
  assert.ok(instance.isRunning, instance.log);
  return await attacking;
}
