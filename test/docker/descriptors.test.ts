/**
 * A low descriptor limit: dns11 logs it at the start, serves as many containers as possible, and skips the others with a
 * reason; they keep Docker's resolver.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { LIMITS } from "../../src/base/limits.ts";
import { roomForContainers } from "../../src/kernel/descriptors.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { check } from "../support/program/command.ts";
import { waitFor } from "../support/rig/wait.ts";

const FILES = 80;
const CONTAINERS = 8;
const FEW = 1_024;

let engine: Engine;
before(async () => (engine = await startEngine({ liveRestore: true })));
after(async () => await engine[Symbol.asyncDispose]());

test("a low descriptor limit is logged at the start", async () => {
  const room = roomForContainers(FEW);
  assert.ok(room < LIMITS.containersExpected);
  await using instance = await startDns11(engine, { prefix: ["prlimit", `--nofile=${FEW}:${FEW}`] });
  await instance.logs(new RegExp(`"descriptors":${FEW},"containers":${room},.*descriptor limit is low`));
});

test("the descriptor table is large enough for thousands of containers from the start", async () => {
  await using instance = await startDns11(engine);
  const { pid } = await instance.status();
  const size = Number(/^FDSize:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  assert.ok(size >= Math.min(LIMITS.descriptorsPreallocated, limitOf(pid)), String(size));
});

test("with a low descriptor limit some containers are served, the others keep Docker's resolver, and names resolve in all", async () => {
  await createNetwork(engine, "n1");
  const containers: Container[] = [];
  for (let index = 0; index < CONTAINERS; index++) {
    containers.push(await runContainer(engine, { name: `c${index}`, networks: ["n1"] }));
  }
  // Node opens a hundred files at once to load a program, so the limit is set later, while dns11 waits for its engine.
  await engine.kill("SIGKILL");
  await using instance = new Dns11(engine.host);
  await waitFor("dns11 to wait for the engine", () =>
    instance.log.includes("waiting for the engine") ? true : undefined,
  );
  await check("prlimit", ["--pid", String(instance.pid), `--nofile=${FILES}:${FILES}`]);
  await engine.startDaemon();
  await instance.waitUntilReady();
  await waitFor("some to be attached, and the others to have no descriptors", async () => {
    const { containers: shown } = await instance.status();
    const codes = new Set(shown.map(({ state, code }) => code ?? state));
    return [...codes].toSorted().join() === "NO_DESCRIPTORS,attached" ? true : undefined;
  });
  for (const container of containers) {
    assert.deepEqual(dataOf(await dig(container, "c0")), [containers[0]?.address("n1")]);
  }
});

function limitOf(pid: number): number {
  return Number(/^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, "utf8"))?.[1]);
}
