/**
 * Quarantine: a container that repeatedly crashes dns11 is attached last and alone, then stays with Docker's resolver, and is
 * released by the doctor. After a real SIGKILL, the test writes into the crash record what the process was doing.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";

const CLIENT_WORD = 8;
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
  instance = await serve(join(engine.folder, "state"));
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** Without a keeper, whose start costs processor time: it has no part in this. */
async function serve(stateDir: string): Promise<Dns11> {
  return await startDns11(engine, { stateDir, settings: { keeper: "off" } });
}

// Simulates a crash while attaching a container, and restarts dns11 as a supervisor does.
async function crashAttaching(id: string): Promise<void> {
  instance.kill("SIGKILL");
  await instance.exited;
  const folder = readdirSync(instance.stateDir).map((name) => join(instance.stateDir, name))[0] ?? assert.fail();
  const record = readFileSync(join(folder, "black-box"));
  // The kill may have hit it while it answered its own check of another container.
  record.writeUInt32LE(0, CLIENT_WORD);
  record.writeUInt32LE(1, ATTACHING_WORD);
  record.fill(0, ATTACHING_AT, ATTACHING_AT + ID_BYTES);
  record.write(id, ATTACHING_AT, "latin1");
  writeFileSync(join(folder, "black-box"), record);
  instance = await serve(instance.stateDir);
}

/** Each verification is logged; the first one counts. */
function attachedInOrder(): string[] {
  const all = [...instance.log.matchAll(/"container":"(\w+)","msg":"attached"/g)].map(([, name = ""]) => name);
  return [...new Set(all)];
}

test("after one or two crashes the container is still served, and attached last after the second", async () => {
  await crashAttaching(web.id);
  assert.equal((await instance.waitFor("web", "attached")).state, "attached");
  await crashAttaching(web.id);
  await instance.waitFor("web", "attached");
  await instance.logs(/attached last, on its own/);
  await instance.logs(/"container":"web","msg":"attached"/);
  assert.deepEqual(attachedInOrder(), ["other", "web"]);
});

test("after one more crash it is quarantined and stays with Docker's resolver; status, doctor and ps report it", async () => {
  await crashAttaching(web.id);
  const { state, code, reason } = await instance.waitFor("web", "quarantined");
  assert.deepEqual([state, code], ["quarantined", "quarantined"]);
  assert.match(reason ?? "", /crashed repeatedly while attaching it; quarantined until \d{4}-/);
  const [ttl, served] = [await dig(web, "other"), await dig(other, "web")].map((reply) => reply.answer[0]?.ttl);
  assert.deepEqual([ttl, served], [600, 5], "Docker answers the one, dns11 the other");
  assert.deepEqual(dataOf(await dig(other, "web")), [web.address("n1")], "its names still resolve");
  const at = ["-H", engine.host, "--state-dir", instance.stateDir];
  const { stdout } = await dns11(["doctor", "web", ...at]);
  assert.match(stdout, /quarantined until/);
  const { stdout: rows } = await dns11(["ps", ...at]);
  assert.match(rows, /^web +QUARANTINED/m);
});

test("a normal restart does not end the quarantine", async () => {
  await instance.stop();
  instance = await serve(instance.stateDir);
  await instance.waitFor("web", "quarantined");
});

test("doctor --fix releases the container", async () => {
  const at = ["-H", engine.host, "--state-dir", instance.stateDir];
  const { stdout } = await dns11(["doctor", "web", "--fix", ...at]);
  assert.match(stdout, /released the container from quarantine/);
  await instance.waitFor("web", "attached");
  assert.equal((await dig(web, "other")).answer[0]?.ttl, 5);
});

test("if crashes cannot be recorded, everything else works", async () => {
  await instance.stop();
  const folder = readdirSync(instance.stateDir).map((name) => join(instance.stateDir, name))[0] ?? assert.fail();
  rmSync(join(folder, "black-box"));
  mkdirSync(join(folder, "black-box"));
  instance = await serve(instance.stateDir);
  await instance.logs(/the state directory is unusable/);
  await instance.waitFor("web", "attached");
});
