// Proves that a bundle has what a bug report needs, from a real engine, and nothing in it names what the user runs.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { FailuresReport } from "../../src/api/failures.ts";
import { dig } from "../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import type { CommandResult } from "../support/program/command.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

const SECRETS = ["acme", "payroll", "ledger", "vault", "8.8.4.4", "/srv/customers", "intranet"];
const FILES = ["version", "settings", "status", "counters", "upstreams", "cache", "failures", "doctor"];

const folder = makeFolder("bundles");
let engine: Engine;
let upstream: Upstream;
let instance: Dns11;
let app: Container;

before(async () => {
  engine = await startEngine({ resolvConf: "nameserver 127.0.0.1\n" });
  upstream = await startUpstream(engine);
  await createNetwork(engine, "acme_back");
  app = await runContainer(engine, {
    name: "acme-payroll-1",
    networks: [{ name: "acme_back", aliases: ["payroll"] }],
    args: ["--dns-search", "intranet.nx.test", "--dns", "127.0.0.1", "--dns", "8.8.4.4"],
    labels: {
      "com.docker.compose.project": "acme",
      "com.docker.compose.service": "payroll",
      "com.docker.compose.project.config_files": "/srv/customers/acme/compose.yaml",
    },
  });
  instance = await startDns11(engine);
  const stopped = await runContainer(engine, {
    name: "acme-vault-1",
    networks: [{ name: "acme_back", aliases: ["vault"] }],
    labels: { "com.docker.compose.project": "acme", "com.docker.compose.service": "vault" },
  });
  await stopped.stop();
  await dig(app, "vault");
  await dig(app, "ledger");
  await dig(app, "ledger.acme.servfail.test");
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function bundle(path: string, ...args: string[]): Promise<CommandResult> {
  return await dns11(["doctor", "--bundle", path, "-H", engine.host, "--state-dir", instance.stateDir, ...args]);
}

function textOf(path: string, file = ""): string {
  const name = file === "" ? [] : [`dns11-bundle/${file}`];
  return spawnSync("tar", ["-xzOf", path, ...name], { encoding: "utf8" }).stdout;
}

test("a bundle has all files, and nothing that names what runs here", async () => {
  const path = join(folder, "a.tar.gz");
  const { stdout, stderr } = await bundle(path);
  assert.match(stderr, /^wrote .*a\.tar\.gz \(12 files, \d+ KiB\); names and public addresses are replaced/m);
  assert.match(stdout, /acme-payroll-1/, "what is printed here is not redacted");
  for (const file of FILES) assert.ok(Object.keys(JSON.parse(textOf(path, `${file}.json`)) as object).length > 0, file);
  assert.match(
    textOf(path, "resolv-conf.txt"),
    /^# container-1 \(engine\)\nnameserver 127\.0\.0\.11\nsearch name-\d+\.name-\d+\.test\n/m,
  );
  assert.match(textOf(path, "rules.txt"), /table ip dns11 \{[^]*dnat to 127\.0\.0\.11:/);
  assert.match(textOf(path, "README.txt"), /doctor\.txt +what dns11 doctor prints/);
  assert.doesNotMatch(textOf(path, "README.txt"), /Missing/);
  const { failures } = JSON.parse(textOf(path, "failures.json")) as Pick<FailuresReport, "failures">;
  assert.deepEqual(
    failures.map(({ container, result }) => `${container} ${result}`).toSorted(),
    ["NXDOMAIN", "SERVFAIL", "SERVFAIL"].map((result) => `container-1 ${result}`),
  );
  const { cause } = failures.find(({ result }) => result === "NXDOMAIN") ?? {};
  assert.match(cause?.sentence ?? "", /^"service-\d+" is container container-\d+, which exited/);
  const all = textOf(path);
  for (const secret of SECRETS) assert.ok(!all.includes(secret), `${secret}: ${contextOf(all, secret)}`);
});

function contextOf(text: string, part: string): string {
  const at = text.indexOf(part);
  return text.slice(Math.max(0, at - 100), at + 100);
}

test("on request names stay, and an existing file is not overwritten", async () => {
  const path = join(folder, "b.tar.gz");
  await bundle(path, "--no-redact");
  assert.match(textOf(path), /acme-payroll-1/);
  const again = await bundle(path);
  assert.deepEqual([again.code, again.stdout], [1, ""]);
  assert.match(again.stderr, /exists, and dns11 does not overwrite it\n {2}Choose the path/);
});

test("without a running dns11 there is a bundle, which says what is missing", async () => {
  const path = join(folder, "c.tar.gz");
  const { stderr } = await dns11(["doctor", "--bundle", path, "-H", engine.host, "--state-dir", join(folder, "none")]);
  assert.match(stderr, /^wrote /m);
  assert.match(textOf(path, "README.txt"), /Missing:\n- status: dns11 is not running for this engine/);
  assert.match(textOf(path, "doctor.txt"), /not running for this engine/);
});
