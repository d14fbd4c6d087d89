/**
 * A policy from what a project does: the walkthrough of docs/policy.md as a reader types it, with a real Compose project; names and
 * addresses that a container makes up for the one who learns; and what a changed policy would have refused.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { dig } from "../../support/client/dig.ts";
import { ComposeProject } from "../../support/engine/compose-project.ts";
import type { Container } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { PROGRAM } from "../../support/program/built.ts";
import { type CommandResult, run } from "../../support/program/command.ts";
import { type Dns11, WITHOUT_KEEPER, startDns11 } from "../../support/program/dns11.ts";
import { Internet } from "../../support/rig/internet.ts";
import { inNetns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";

const SETTINGS = "/etc/dns11/dns11.yaml";
/** It does not matter whether anybody answers. */
const CONNECT = `
const [, port, address] = process.argv;
require("node:net").connect(Number(port), address).on("connect", () => process.exit()).on("error", () => process.exit());`;

let engine: Engine;
let upstream: Upstream;
let internet: Internet;
let app: Container;
let instance: Dns11;
let folder: string;
let settings: string;

before(async () => {
  engine = await startEngine();
  upstream = await startUpstream(engine);
  internet = await Internet.connect(engine.id);
  const project = await ComposeProject.create(engine, "shop");
  project.set("app", {});
  project.set("db", {});
  await project.up();
  [app = assert.fail("there is no container")] = await project.containers("app");
  folder = join(engine.folder, "walk");
  mkdirSync(join(folder, "bin"), { recursive: true });
  settings = join(folder, "dns11.yaml");
  writeFileSync(settings, "version: 1\n");
  writeFileSync(join(folder, "bin", "sudo"), '#!/bin/sh\nexec "$@"\n', { mode: 0o755 });
  writeFileSync(join(folder, "bin", "dns11"), `#!/bin/sh\nexec ${process.execPath} ${PROGRAM} "$@"\n`, { mode: 0o755 });
  instance = await startDns11(engine, { args: ["--config", settings], env: WITHOUT_KEEPER });
});
after(async () => {
  await instance?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
  await internet?.[Symbol.asyncDispose]();
  await engine?.[Symbol.asyncDispose]();
});

async function shell(script: string): Promise<CommandResult> {
  const env = { DOCKER_HOST: engine.host, DNS11_STATE_DIR: instance.stateDir };
  return await run("sh", ["-euc", `PATH=${join(folder, "bin")}:$PATH\n${script}`], { cwd: folder, env });
}

async function connect(port: number, address: string): Promise<void> {
  const [command = "", ...args] = inNetns(app.netnsPath, process.execPath, ["-e", CONNECT, String(port), address]);
  assert.equal((await run(command, args)).code, 0);
}

/** What the project does, again and again, until it is enough. */
async function workUntil(isEnough: Promise<unknown>): Promise<void> {
  let isRunning = true;
  const end = isEnough.finally(() => (isRunning = false));
  while (isRunning) {
    for (const name of ["a7.ok.test", "db", "b2.ok.test"]) await dig(app, name);
    await dig(app, "c3.ok.test", "TXT");
    await connect(443, "192.0.2.7");
    await connect(22, "198.51.100.9");
  }
  await end;
}

test("the walkthrough of docs/policy.md leads from nothing to a policy that is enforced", async () => {
  const page = readFileSync("docs/policy.md", "utf8");
  const part = page.slice(page.indexOf("## Learn one, in five minutes"));
  const steps = [...part.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, step = ""]) =>
    step.replaceAll(/^ {3}/gm, "").replaceAll(SETTINGS, settings).replace("--for 10m", "--for 8s"),
  );
  assert.equal(steps.length, 5);
  const walk = async (step: string): Promise<CommandResult> => {
    const result = await shell(step);
    assert.equal(result.code, 0, `${step}\n${result.stdout}\n${result.stderr}`);
    return result;
  };
  const [record = "", learn = "", diff = "", put = "", enforce = ""] = steps;
  await walk(record);
  await waitFor("the project to be recorded", async () => {
    await connect(22, "198.51.100.9");
    return (await shell("dns11 egress --project shop")).stdout.includes("198.51.100.9") ? true : undefined;
  });
  await workUntil(walk(learn));
  const learned = readFileSync(join(folder, "policy.yaml"), "utf8");
  const rules = [...learned.matchAll(/^ {6}- (".*")/gm)].map(([, text = ""]) => JSON.parse(text) as string);
  assert.deepEqual(rules, ["a7.ok.test:443/tcp", "b2.ok.test", "c3.ok.test", "198.51.100.9:22/tcp"]);
  assert.match((await walk(diff)).stdout, /nothing that was recorded of shop-app-1 would be refused/);
  const audit = await walk(put);
  assert.match(audit.stdout, /is valid/);
  await dig(app, "evil9.ok.test");
  assert.match((await walk("dns11 policy log")).stdout, /evil9\.ok\.test/);
  assert.match((await walk(enforce)).stdout, /shop-app-1[\s\S]*enforce/);
  for (const name of ["a7.ok.test", "b2.ok.test", "db"]) assert.equal((await dig(app, name)).status, "NOERROR", name);
  await upstream.queries();
  assert.equal((await dig(app, "evil8.ok.test")).status, "NXDOMAIN");
  const asked = (await upstream.queries()).map(({ name }) => name);
  assert.ok(!asked.includes("evil8.ok.test"), asked.join());
});

test("names that a container makes up become no rule for others, and a stricter file says what it would refuse", async () => {
  writeFileSync(settings, "version: 1\negress: true\n");
  await instance.reload();
  for (const name of ["*.ok.test", "**.ok.test", 'a" # x.ok.test', "d4.ok.test"]) await dig(app, name);
  const { code, stdout, stderr } = await shell("dns11 policy learn --project shop > made-up.yaml; cat made-up.yaml");
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(stdout, /\*/);
  assert.match(stdout, /"d4\.ok\.test"/);
  assert.match(stderr, /names are left out/);
  assert.equal((await shell("dns11 check-config made-up.yaml")).code, 0);
  writeFileSync(
    join(folder, "strict.yaml"),
    'version: 1\npolicies:\n  shop:\n    for: ["project=shop"]\n    mode: enforce\n    allow: [d4.ok.test]\n',
  );
  const diff = await shell("dns11 policy diff strict.yaml");
  assert.equal(diff.code, 1);
  assert.match(diff.stdout, /shop-app-1 +a7\.ok\.test A +policy shop: no rule allows it \(.*strict\.yaml:3/);
  assert.doesNotMatch(diff.stdout, /d4\.ok\.test|db A/);
});

test("without egress, without names, or without a project nothing is learned, and each says why", async () => {
  const none = await shell("dns11 policy learn");
  assert.match(none.stderr, /one project or one container/);
  writeFileSync(settings, "version: 1\negress: true\nqueries:\n  names: hidden\n");
  await instance.reload();
  assert.match((await shell("dns11 policy learn --project shop")).stderr, /queries\.names/);
  writeFileSync(settings, "version: 1\n");
  await instance.reload();
  assert.match((await shell("dns11 policy learn --project shop")).stderr, /Set `egress: true`/);
});
