/**
 * The nsswitch.conf of a container, which whoever controls it writes: explain follows its links inside the container, takes no longer for a
 * pipe or an endless file, and says nothing of what is mounted there.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { ControlClient } from "../../src/api/control-client.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { stdoutOf } from "../support/program/command.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";

const NSSWITCH = "/etc/nsswitch.conf";

let engine: Engine;
let instance: Dns11;
let client: ControlClient;
let web: Container;

before(async () => {
  engine = await startEngine();
  await createNetwork(engine, "n1");
  web = await runContainer(engine, { name: "web", networks: ["n1"] });
  instance = await startDns11(engine);
  client = instance.client;
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** The codes of the causes after a shell command in the container. */
async function codesAfter(script: string, container = web): Promise<string[]> {
  stdoutOf(await container.exec("sh", ["-c", `rm -rf ${NSSWITCH}; ${script}`]), script);
  const { causes } = await client.explain({ container: container.name, name: "web" });
  return causes.map(({ code }) => code);
}

test("a file, and a link inside the container, are read", async () => {
  assert.deepEqual(await codesAfter(`echo 'hosts: files' >${NSSWITCH}`), ["nsswitch"]);
  assert.deepEqual(await codesAfter(`echo 'hosts: files dns' >${NSSWITCH}`), []);
  assert.deepEqual(await codesAfter(`echo 'hosts: files' >/there; ln -s /there ${NSSWITCH}`), ["nsswitch"]);
  assert.deepEqual(await codesAfter(`ln -s ../../../../there ${NSSWITCH}`), ["nsswitch"]);
});

test("a pipe, a device, a folder, a loop, another file system and a missing file are none", async () => {
  for (const script of [
    `mkfifo ${NSSWITCH}`,
    `ln -s /dev/zero ${NSSWITCH}`,
    `mkdir ${NSSWITCH}`,
    `ln -s ${NSSWITCH} ${NSSWITCH}`,
    `ln -s /proc/1/environ ${NSSWITCH}`,
    `ln -s /proc/self/root/there ${NSSWITCH}`,
    `ln -s /dev/shm/there ${NSSWITCH}; echo 'hosts: files' >/dev/shm/there`,
    "true",
  ])
    assert.deepEqual(await codesAfter(script), [], script);
});

test("of an endless file the first lines count, and little of a line is told", async () => {
  const endless = `(echo 'hosts: files'; head -c 30000000 /dev/zero | tr '\\0' x) >${NSSWITCH}`;
  assert.deepEqual(await codesAfter(endless), ["nsswitch"]);
  const steering = `printf 'hosts: files \\033[2J%09000d\\n' 0 >${NSSWITCH}`;
  assert.deepEqual(await codesAfter(steering), ["nsswitch"]);
  const { causes } = await client.explain({ container: "web", name: "web" });
  assert.ok((causes[0]?.sentence.length ?? 0) < 250, causes[0]?.sentence);
});

test("what is mounted over it is not read", async () => {
  const file = join(engine.folder, "nsswitch.conf");
  writeFileSync(file, "hosts: files\n");
  await using mounted = await runContainer(engine, {
    name: "mounted",
    networks: ["n1"],
    args: [`--volume=${file}:${NSSWITCH}`],
  });
  await instance.waitFor(mounted.name, "attached");
  const { causes } = await client.explain({ container: mounted.name, name: "web" });
  assert.deepEqual(causes, []);
});
