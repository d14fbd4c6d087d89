/**
 * Few descriptors: dns11 says so at start, serves as many containers as it has room for, and leaves the others to Docker's
 * resolver with a reason.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { LIMITS } from "../../src/config/limits.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/asking/dig.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { startEngine } from "../support/engine/engine.ts";

const FILES = 128;
const CONTAINERS = 16;

test("with few descriptors some are served, the others are Docker's, and everybody resolves", async () => {
  await using engine = await startEngine();
  await createNetwork(engine, "n1");
  const containers: Container[] = [];
  for (let index = 0; index < CONTAINERS; index++) {
    containers.push(await runContainer(engine, { name: `c${index}`, networks: ["n1"] }));
  }
  await using instance = await startDns11(engine, { prefix: ["prlimit", `--nofile=${FILES}:${FILES}`] });
  assert.match(instance.log, /"descriptors":128,"room":0,.*there are descriptors for few containers/);
  const { containers: shown } = await instance.status();
  const codes = new Set(shown.map(({ state, code }) => code ?? state));
  assert.deepEqual(
    [...codes].toSorted(),
    ["NO_DESCRIPTORS", "attached"],
    JSON.stringify(shown.map(({ reason }) => reason)),
  );
  for (const container of containers) {
    assert.deepEqual(dataOf(await dig(container, "c0")), [containers[0]?.address("n1")]);
  }
});

test("the kernel has room for the descriptors of thousands of containers from the start", async () => {
  await using engine = await startEngine();
  await using instance = await startDns11(engine);
  const { pid } = await instance.status();
  const size = Number(/^FDSize:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  assert.ok(size >= Math.min(LIMITS.descriptorsForeseen, limitOf(pid)), String(size));
});

function limitOf(pid: number): number {
  return Number(/^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, "utf8"))?.[1]);
}
