// Tests of the .deb on a clean system of another Debian release with its own engine: it installs all its files, serves
// containers with its own Node, survives an upgrade while running and keeps settings, and a purge leaves nothing, not
// even of a killed instance.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, readlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";

import { check, run } from "../support/program/command.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { systemFiles } from "../support/engine/system-files.ts";
import { makeFolder } from "../support/rig/folder.ts";
import { waitFor } from "../support/rig/wait.ts";

const HOME = "/usr/lib/dns11";
const SETTINGS = "/etc/dns11/dns11.yaml";

let engine: Engine;
let web: Container;
let instance: Dns11;
let filesBefore: readonly string[];

before(async () => {
  engine = await startEngine({ suite: "trixie" });
  await createNetwork(engine, "shop");
  web = await runContainer(engine, { name: "web", networks: ["shop"] });
  await runContainer(engine, { name: "db", networks: ["shop"] });
  filesBefore = await files();
});
after(async () => {
  await instance?.[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

test("dpkg -i installs all files and starts nothing", async () => {
  await host("dpkg", "-i", await build("0.1.0"));
  const brought = (await host("dpkg", "-L", "dns11")).split("\n");
  for (const path of [
    "/usr/bin/dns11",
    "/usr/lib/systemd/system/dns11.service",
    "/usr/lib/systemd/system/dns11-boot.service",
    "/usr/lib/systemd/user/dns11.service",
    "/usr/share/man/man8/dns11.8.gz",
    "/usr/share/man/man5/dns11.yaml.5.gz",
    "/usr/share/bash-completion/completions/dns11",
    "/usr/share/zsh/vendor-completions/_dns11",
    "/usr/share/fish/vendor_completions.d/dns11.fish",
    "/usr/libexec/docker/cli-plugins/docker-dns",
    "/usr/share/doc/dns11/copyright",
    "/usr/share/doc/dns11/README.md",
    "/usr/share/doc/dns11/docs/install.md",
    "/usr/share/doc/dns11/docs/examples/lease.py",
    SETTINGS,
  ]) {
    assert.ok(brought.includes(path), path);
  }
  assert.deepEqual(
    brought.filter((path) => path.includes("/docs/internals")),
    [],
    "they are for those who have the source",
  );
  assert.equal(await host("sh", "-c", "ls /run/dns11 2>/dev/null || echo none"), "none\n");
  const metadata = await host("/usr/libexec/docker/cli-plugins/docker-dns", "docker-cli-plugin-metadata");
  assert.equal((JSON.parse(metadata) as { SchemaVersion: string }).SchemaVersion, "0.1.0");
  await host("dns11", "check-config", SETTINGS);
  assert.match(await host("gzip", "-dc", "/usr/share/man/man8/dns11.8.gz"), /^\.SS dns11 status$/m);
});

test("links of the documents lead to what is in the package, and those to internals to the repository", async () => {
  const folder = join(makeFolder("deb"), "root");
  await check("dpkg-deb", ["-x", await build("0.1.0"), folder]);
  const root = join(folder, "usr/share/doc/dns11");
  const documents = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".md"));
  assert.ok(documents.length > 30);
  let internals = 0;
  for (const path of documents) {
    for (const [, target = ""] of readFileSync(join(root, path), "utf8").matchAll(/\]\(([^)\s#]+)(?:#[^)\s]*)?\)/g)) {
      const source = /^https:\/\/github\.com\/dns11\/dns11\/blob\/v[\d.]+\/(docs\/internals\/.*)/.exec(target)?.[1];
      if (source === undefined && /^https?:/.test(target)) continue;
      if (source !== undefined) internals++;
      assert.ok(existsSync(source ?? join(root, dirname(path), target)), `${path}: ${target}`);
    }
  }
  assert.ok(internals > 10);
});

test("dns11 serves with its own Node and the packaged settings file", async () => {
  instance = await startInstalled("--config", SETTINGS);
  assert.equal(readlinkSync(`/proc/${instance.pid}/exe`), `${HOME}/bin/node`);
  assert.equal((await instance.status()).config, SETTINGS);
  const { answer } = await dig(web, "db");
  assert.equal(answer[0]?.ttl, 5);
});

test("an upgrade keeps the settings and the running instance", async () => {
  await host("sh", "-c", `echo 'ttl: 7' >> ${SETTINGS}`);
  await host("dpkg", "-i", await build("0.1.1~test"));
  assert.match(await host("dpkg-query", "-W", "dns11"), /\t0\.1\.1~test/);
  assert.match(await host("cat", SETTINGS), /^ttl: 7$/m);
  assert.equal((await dig(web, "db")).answer[0]?.ttl, 5);
  // This also loads modules late, from the files of the other version.
  instance.kill("SIGHUP");
  await waitFor("the new settings", async () => ((await dig(web, "db")).answer[0]?.ttl === 7 ? true : undefined));
});

test("a purge after a kill leaves nothing, and Docker's resolver answers", async () => {
  instance.kill("SIGKILL");
  await instance.exited;
  assert.notEqual(await host("ls", "/run/dns11"), "");
  await host("dpkg", "--purge", "dns11");
  assert.deepEqual(await files(), filesBefore);
  assert.equal(await host("find", "/run", "-name", "*dns11*"), "");
  assert.notEqual((await run("sh", ["-c", 'exec "$@"', "sh", ...inHost("dpkg-query"), "-W", "dns11"])).code, 0);
  assert.equal((await dig(web, "db")).answer[0]?.ttl, 600);
});

test("a purge while dns11 runs warns about the instance, which keeps serving and exits cleanly", async () => {
  await host("dpkg", "-i", await build("0.1.0"));
  await instance[Symbol.asyncDispose]();
  instance = await startInstalled();
  const purge = await run("sh", ["-c", 'exec "$@" 2>&1', "sh", ...inHost("dpkg"), "--purge", "dns11"]);
  assert.equal(purge.code, 0, purge.stdout);
  assert.match(purge.stdout, new RegExp(`an instance is still running.*"pid":${instance.pid}`));
  assert.equal((await dig(web, "db")).answer[0]?.ttl, 5);
  assert.equal(await instance.stop(), 0);
  assert.equal((await dig(web, "db")).answer[0]?.ttl, 600);
  assert.deepEqual(await files(), filesBefore);
});

async function startInstalled(...args: readonly string[]): Promise<Dns11> {
  const root = `/proc/${engine.hostPid}/root`;
  return await startDns11(engine, { program: inHost("dns11"), root, stateDir: "/run/dns11", args });
}

const built = new Map<string, Promise<string>>();

// Builds the package with a version, in the engine's folder, which has the same path on machine and engine host.
async function build(version: string): Promise<string> {
  const building =
    built.get(version) ??
    check("scripts/deb.sh", [engine.folder], { env: { DEB_VERSION: version, DEB_COMPRESS: "none" } });
  built.set(version, building);
  const [, path = ""] = /^deb: install it with: sudo apt install (\S+\.deb)$/m.exec(await building) ?? [];
  const left = readdirSync(engine.folder).filter((each) => each.endsWith(".part"));
  assert.deepEqual(left, [], "a file that is not complete has another name");
  return path;
}

function inHost(command: string): string[] {
  return ["nsenter", "--target", String(engine.hostPid), "--mount", "--net", "--", command];
}

async function host(command: string, ...args: readonly string[]): Promise<string> {
  const [first = "", ...rest] = inHost(command);
  return await check(first, [...rest, ...args], { env: { DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C" } });
}

async function files(): Promise<string[]> {
  return await systemFiles(inHost("env"));
}
