/**
 * A container by which dns11 dies again and again is attached last and alone, then left to Docker's resolver, and released
 * by the doctor. What a process was doing when it died is put into its black box by the test, after a real SIGKILL.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";

const ATTACHING_WORD = 12;
const ATTACHING_AT = 16;
const ID_BYTES = 64;

let engine: Engine;
let web: Container;
let other: Container;
let instance: Dns11;

before(async () => {
  engine = await startEngine();
  await createNetwork(engine, "n1");
  web = await runContainer(engine, { name: "web", networks: ["n1"] });
  other = await runContainer(engine, { name: "other", networks: ["n1"] });
  instance = await startDns11(engine, { stateDir: join(engine.folder, "state") });
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

// It dies while it attaches a container, and is started anew, as a supervisor does.
async function dieAttaching(id: string): Promise<void> {
  instance.kill("SIGKILL");
  await instance.exited;
  const folder = readdirSync(instance.stateDir).map((name) => join(instance.stateDir, name))[0] ?? assert.fail();
  const box = readFileSync(join(folder, "black-box"));
  box.writeUInt32LE(1, ATTACHING_WORD);
  box.fill(0, ATTACHING_AT, ATTACHING_AT + ID_BYTES);
  box.write(id, ATTACHING_AT, "latin1");
  writeFileSync(join(folder, "black-box"), box);
  instance = await startDns11(engine, { stateDir: instance.stateDir });
}

function attachedInOrder(): string[] {
  return [...instance.log.matchAll(/"container":"(\w+)","msg":"attached"/g)].map(([, name = ""]) => name);
}

test("a death or two leave the container served, in the end last of all", async () => {
  await dieAttaching(web.id);
  assert.equal((await instance.waitFor("web", "attached")).state, "attached");
  await dieAttaching(web.id);
  await instance.waitFor("web", "attached");
  assert.match(instance.log, /attached last and alone/);
  assert.deepEqual(attachedInOrder(), ["other", "web"]);
});

test("one more, and it is left to Docker's resolver, which everybody is told", async () => {
  await dieAttaching(web.id);
  const { state, code, reason } = await instance.waitFor("web", "quarantined");
  assert.deepEqual([state, code], ["quarantined", "quarantined"]);
  assert.match(reason ?? "", /crashed repeatedly while attaching it; quarantined until \d{4}-/);
  const [ttl, served] = [await dig(web, "other"), await dig(other, "web")].map((reply) => reply.answer[0]?.ttl);
  assert.deepEqual([ttl, served], [600, 5], "Docker answers the one, dns11 the other");
  assert.deepEqual(dataOf(await dig(other, "web")), [web.address("n1")], "its names are known all the same");
  const at = ["-H", engine.host, "--state-dir", instance.stateDir];
  const { stdout } = await dns11(["doctor", "web", ...at]);
  assert.match(stdout, /quarantine until/);
  const { stdout: rows } = await dns11(["ps", ...at]);
  assert.match(rows, /^web +quarantined/m);
});

test("a restart that is nobody's fault does not end it", async () => {
  await instance.stop();
  instance = await startDns11(engine, { stateDir: instance.stateDir });
  await instance.waitFor("web", "quarantined");
});

test("the doctor releases it", async () => {
  const at = ["-H", engine.host, "--state-dir", instance.stateDir];
  const { stdout } = await dns11(["doctor", "web", "--fix", ...at]);
  assert.match(stdout, /no longer in quarantine/);
  await instance.waitFor("web", "attached");
  assert.equal((await dig(web, "other")).answer[0]?.ttl, 5);
});

test("a state folder without room costs the memory of deaths, and nothing else", async () => {
  await instance.stop();
  const folder = readdirSync(instance.stateDir).map((name) => join(instance.stateDir, name))[0] ?? assert.fail();
  rmSync(join(folder, "black-box"));
  mkdirSync(join(folder, "black-box"));
  instance = await startDns11(engine, { stateDir: instance.stateDir });
  assert.match(instance.log, /the state folder is unusable/);
  await instance.waitFor("web", "attached");
});
