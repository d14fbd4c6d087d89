// Tests of install.sh against a local file server, on a Debian system with an engine and on one with nothing but busybox: it runs nothing
// that was not verified, leaves nothing when it fails or is killed, upgrades what serves, undoes an upgrade that does not work, and removes
// all that it installed.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { chmodSync, cpSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";

import { dig } from "../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { systemFiles } from "../support/engine/system-files.ts";
import { type CommandResult, SYSTEM_PATH, check, run } from "../support/program/command.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { inNetns } from "../support/rig/netns.ts";
import { FileServer } from "../support/servers/file-server.ts";

const ARCH = { x64: "amd64", arm64: "arm64" }[process.arch as string] ?? "";
const SETTINGS = "/etc/dns11/dns11.yaml";
const PRUNED = "usr/local/share/doc/dns11/docs/glossary.md";

let engine: Engine;
let web: Container;
let server: FileServer;
let releases: string;
let filesBefore: readonly string[];

before(async () => {
  engine = await startEngine({ suite: "trixie" });
  await createNetwork(engine, "shop");
  web = await runContainer(engine, { name: "web", networks: ["shop"] });
  await runContainer(engine, { name: "db", networks: ["shop"] });
  releases = join(engine.folder, "releases");
  await makeReleases();
  cpSync("scripts/install.sh", join(engine.folder, "install.sh"));
  server = await FileServer.start(engine.netnsPath, releases);
  filesBefore = await files();
});
after(async () => {
  server?.[Symbol.dispose]();
  await engine[Symbol.asyncDispose]();
});

test("wrong arguments are refused with what to do", async () => {
  for (const [args, message] of [
    [["--version"], /--version needs a value: install\.sh --help/],
    [["--version", "../x"], /"\.\.\/x" is no version; an example is 0\.1\.0/],
    [["--method", "rpm"], /no method "rpm": it is deb or archive/],
    [["--purge"], /--purge goes with --remove/],
    [["--fast"], /unknown argument "--fast": install\.sh --help/],
    [["--url", "http://192.0.2.1/v1"], /http:\/\/192\.0\.2\.1\/v1 is not safe: use https/],
    [["--url", "http://127.0.0.1:1@192.0.2.1/v1"], /names a user: leave that out/],
    [["--url", "file:///tmp"], /is not safe: use https/],
    [["--remove"], /dns11 was not installed by this script/],
  ] as const) {
    const { code, stderr } = await installer(...args);
    assert.equal(code, 1, args.join(" "));
    assert.match(stderr, message);
  }
  const { code, stdout } = await installer("--help");
  assert.equal(code, 0);
  assert.match(stdout, /^Usage: sh install\.sh/);
});

test("what is missing, not of the wanted version, or not what the sums say is not installed", async () => {
  for (const [path, args, message] of [
    ["whole/none", [], /cannot download .*\/none\/SHA256SUMS; nothing was installed/],
    ["whole/wrong", [], /_amd64\.deb is not what the release has: its hash is [0-9a-f]{64}, and SHA256SUMS says 0{64}/],
    ["whole/wrong", ["--method", "archive"], /\.tar\.gz is not what the release has/],
    ["whole/empty", [], /SHA256SUMS has no hash for a file of method deb for amd64; nothing was installed/],
    ["whole/twice", [], /SHA256SUMS has several files for amd64/],
    ["whole/huge", [], /SHA256SUMS is larger than the sums of a release/],
    ["whole/v1", ["--version", "0.2.0"], /v1 has dns11 0\.1\.0, not 0\.2\.0; nothing was installed/],
    ["cut/v1", [], /cannot download .*\.deb; nothing was installed/],
    ["cut/v1", ["--method", "archive"], /cannot download .*\.tar\.gz; nothing was installed/],
  ] as const) {
    const { code, stderr } = await installer("--url", `${server.url}/${path}`, ...args);
    assert.equal(code, 1, path);
    assert.match(stderr, new RegExp(message.source.replaceAll("amd64", ARCH)), path);
  }
  assert.deepEqual(await files(), filesBefore);
});

test("killed in the middle of a download it leaves nothing", async () => {
  const [command = "", ...args] = inHost("sh", `${engine.folder}/install.sh`, "--url", `${server.url}/stalled/v1`);
  const child = spawn(command, args, {
    env: environment(),
    stdio: "ignore",
    detached: true,
  });
  await server.stalled();
  // As a terminal does: all processes of the group.
  process.kill(-(child.pid ?? 0), "SIGTERM");
  await once(child, "close");
  assert.deepEqual(await files(), filesBefore);
});

test("with half a script nothing happens", async () => {
  const script = readFileSync("scripts/install.sh", "utf8");
  for (const part of [0.3, 0.6, 0.9]) {
    const [command = "", ...args] = inHost("sh", "-s", "--", "--url", `${server.url}/whole/v1`);
    await run(command, args, { env: environment(), input: script.slice(0, script.length * part) });
  }
  assert.deepEqual(await files(), filesBefore);
});

test("the Debian package: installed, upgraded while it serves, removed and purged", async () => {
  const installed = await installs("v1");
  assert.match(installed, /dns11 0\.1\.0 is installed\n/);
  assert.match(installed, /sudo dns11 doctor/);
  assert.match(await host("dpkg-query", "-W", "dns11"), /\t0\.1\.0\n$/);
  assert.match(await installs("v1"), /dns11 0\.1\.0 is installed already/);
  const other = await installer("--url", `${server.url}/whole/v1`, "--method", "archive");
  assert.match(other.stderr, /dns11 0\.1\.0 is installed as a Debian package/);

  await host("sh", "-c", `echo 'ttl: 7' >> ${SETTINGS}`);
  const instance = await startInstalled();
  assert.match(await installs("v2"), /installing dns11 0\.1\.1 in place of 0\.1\.0/);
  assert.equal((await dig(web, "db")).answer[0]?.ttl, 7);
  await instance[Symbol.asyncDispose]();
  assert.match(await installs("v1", "--version", "0.1.0"), /installing dns11 0\.1\.0 in place of 0\.1\.1/);

  const removed = await installer("--remove");
  assert.equal(removed.code, 0, removed.stderr);
  assert.match(removed.stdout, new RegExp(`${SETTINGS} stays`));
  assert.match(await host("cat", SETTINGS), /^ttl: 7$/m);
  await removesAll();
});

test("the archive: installed, upgraded while it serves, undone, removed and purged", async () => {
  assert.match(await installs("v1", "--method", "archive"), /dns11 0\.1\.0 is installed\n/);
  assert.equal(await host("dns11", "--version"), "0.1.0\n");
  await host("test", "-e", `/${PRUNED}`);
  const unit = await host("cat", "/usr/local/lib/systemd/system/dns11.service");
  assert.match(unit, /^ExecStart=\/usr\/local\/bin\/dns11 run/m);
  assert.doesNotMatch(unit, /\/usr\/bin\//);
  const metadata = await host("/usr/local/libexec/docker/cli-plugins/docker-dns", "docker-cli-plugin-metadata");
  assert.equal((JSON.parse(metadata) as { SchemaVersion: string }).SchemaVersion, "0.1.0");
  const other = await installer("--url", `${server.url}/whole/v1`);
  assert.match(other.stderr, /dns11 0\.1\.0 is installed in \/usr\/local: --method archive, or remove it first/);

  await host("sh", "-c", `echo 'ttl: 7' >> ${SETTINGS}`);
  const instance = await startInstalled();
  assert.match(await installs("v2", "--method", "archive"), /installing dns11 0\.1\.1 in place of 0\.1\.0/);
  assert.equal(await host("dns11", "--version"), "0.1.1\n");
  assert.equal((await dig(web, "db")).answer[0]?.ttl, 7);
  await host("test", "!", "-e", `/${PRUNED}`);
  assert.match(await host("cat", SETTINGS), /^ttl: 7$/m);

  const complete = await files();
  for (const [release, message] of [
    ["broken", /dns11 does not start on this system: it needs glibc 2\.28 or later/],
    ["misplaced", /dns11 does not start from its place\n.*the earlier version is in place again/],
  ] as const) {
    const { code, stderr } = await installer("--url", `${server.url}/whole/${release}`, "--method", "archive");
    assert.equal(code, 1);
    assert.match(stderr, message);
    assert.deepEqual(await files(), complete, release);
    assert.equal(await host("dns11", "--version"), "0.1.1\n");
  }
  // As after a kill between its two steps, then while files are copied, then while they are copied for the first time.
  const home = "/usr/local/lib/dns11";
  for (const killed of [
    `mv ${home} ${home}.previous`,
    `cp -a ${home} ${home}.previous && touch ${home}/incomplete && rm /usr/local/lib/systemd/system/dns11.service`,
    `touch ${home}/incomplete && rm /usr/local/lib/systemd/system/dns11.service`,
  ]) {
    await host("sh", "-c", killed);
    assert.match(await installs("v2", "--method", "archive"), /an earlier run did not end, and is undone/);
    assert.deepEqual(await files(), complete, killed);
  }

  await instance[Symbol.asyncDispose]();
  const removed = await installer("--remove");
  assert.match(removed.stdout, new RegExp(`${SETTINGS} stays; --remove --purge removes it, too`));
  assert.match(await host("cat", SETTINGS), /^ttl: 7$/m);
  await removesAll();
  const again = await installer("--remove", "--purge");
  assert.match(again.stderr, /dns11 was not installed by this script/);
});

test("wget and the tools of busybox are enough, where there is no dpkg", async () => {
  const root = join(engine.folder, "small");
  await makeSmallRoot(root);
  const earlier = readdirSync(root, { recursive: true, encoding: "utf8" }).toSorted();
  const inRoot = async (...words: string[]): Promise<string> => {
    // As hardened servers have it: no program in /tmp can be started.
    const tmp = `mount -t tmpfs -o noexec tmpfs ${root}/tmp`;
    const mounts = `mount --bind /dev ${root}/dev && mount -t proc proc ${root}/proc && ${tmp} && exec chroot ${root} /bin/sh "$@"`;
    const args = ["unshare", "--mount", "sh", "-c", mounts, "sh", ...words];
    const [command = "", ...rest] = inNetns(engine.netnsPath, "env", ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", ...args]);
    return await check(command, rest);
  };
  const unchecked = inRoot("/install.sh", "--url", "https://127.0.0.1:1/v1");
  await assert.rejects(unchecked, /the wget of busybox does not check certificates: install curl/);
  assert.match(await inRoot("/install.sh", "--url", `${server.url}/whole/v1`), /installing dns11 0\.1\.0\n/);
  assert.equal(await inRoot("-c", "/usr/local/bin/dns11 --version"), "0.1.0\n");
  assert.match(await inRoot("/install.sh", "--url", `${server.url}/whole/v2`), /installing dns11 0\.1\.1 in place of/);
  assert.equal(await inRoot("-c", "/usr/local/bin/dns11 --version"), "0.1.1\n");
  assert.match(await inRoot("/install.sh", "--remove", "--purge"), /dns11 is removed\n/);
  const left = readdirSync(root, { recursive: true, encoding: "utf8" }).toSorted();
  assert.deepEqual(left, earlier);
});

async function removesAll(): Promise<void> {
  const { code, stdout, stderr } = await installer("--remove", "--purge");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /dns11 is removed\n/);
  assert.deepEqual(await files(), filesBefore);
  assert.equal((await dig(web, "db")).answer[0]?.ttl, 600);
}

async function startInstalled(): Promise<Dns11> {
  const instance = await startDns11(engine, {
    program: inHost("dns11"),
    root: `/proc/${engine.hostPid}/root`,
    stateDir: "/run/dns11",
    args: ["--config", SETTINGS],
  });
  assert.equal((await dig(web, "db")).answer[0]?.ttl, 7);
  return instance;
}

async function installs(release: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await installer("--url", `${server.url}/whole/${release}`, ...args);
  assert.equal(code, 0, stdout + stderr);
  return stdout;
}

async function installer(...args: readonly string[]): Promise<CommandResult> {
  const [command = "", ...rest] = inHost("sh", join(engine.folder, "install.sh"), ...args);
  return await run(command, rest, { env: environment() });
}

function environment(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: SYSTEM_PATH, LC_ALL: "C", TMPDIR: "/tmp" };
}

function inHost(...words: readonly string[]): string[] {
  const path = "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  return ["nsenter", "--target", String(engine.hostPid), "--mount", "--net", "--", "env", path, ...words];
}

async function host(...words: readonly string[]): Promise<string> {
  const [command = "", ...args] = inHost(...words);
  return await check(command, args, { env: { LC_ALL: "C" } });
}

async function files(): Promise<string[]> {
  return await systemFiles(inHost());
}

/** Two versions, and some that are not as they should be. */
async function makeReleases(): Promise<void> {
  const tree = join(engine.folder, "tree");
  await check("scripts/tree.sh", [tree, "usr/local"]);
  const debs = { v1: "0.1.0", v2: "0.1.1" };
  for (const [release, version] of Object.entries(debs)) {
    const folder = join(releases, release);
    await check("scripts/deb.sh", [folder], { env: { DEB_VERSION: version, DEB_COMPRESS: "none" } });
    const manifest = join(tree, "usr/local/lib/dns11/package.json");
    writeFileSync(manifest, readFileSync(manifest, "utf8").replace(/"version": "[^"]+"/, `"version": "${version}"`));
    if (release === "v2") rmSync(join(tree, PRUNED));
    await archive(tree, folder, version);
    await writeSums(folder);
  }
  // A program that fails anywhere, and one that fails where it is installed only.
  for (const [release, body] of [
    ["broken", "exit 1"],
    ["misplaced", "case $0 in *.new/*) ;; *) exit 1 ;; esac"],
  ] as const) {
    const node = join(tree, "usr/local/lib/dns11/bin/node");
    rmSync(node);
    writeFileSync(node, `#!/bin/sh\n${body}\n`);
    chmodSync(node, 0o755);
    const folder = join(releases, release);
    mkdirSync(folder);
    await archive(tree, folder, "0.1.2");
    await writeSums(folder);
  }
  rmSync(tree, { recursive: true });
  const sums = readFileSync(join(releases, "v2/SHA256SUMS"), "utf8");
  for (const [release, text] of [
    ["wrong", sums.replaceAll(/^[0-9a-f]{64}/gm, "0".repeat(64))],
    ["empty", "\n"],
    ["twice", sums + sums.replaceAll("0.1.1", "0.1.2")],
    ["huge", sums + `${"x".repeat(70)}\n`.repeat(1000)],
  ] as const) {
    mkdirSync(join(releases, release));
    for (const name of readdirSync(join(releases, "v2"))) {
      if (name !== "SHA256SUMS") symlinkSync(`../v2/${name}`, join(releases, release, name));
    }
    writeFileSync(join(releases, release, "SHA256SUMS"), text);
  }
}

async function archive(tree: string, folder: string, version: string): Promise<void> {
  const file = join(folder, `dns11-${version}-linux-${ARCH}.tar.gz`);
  await check("tar", ["-C", tree, "-I", "gzip -1", "--owner=0", "--group=0", "-cf", file, "etc", "usr"]);
}

async function writeSums(folder: string): Promise<void> {
  const lines = readdirSync(folder).map((name) => {
    const hash = createHash("sha256").update(readFileSync(join(folder, name)));
    return `${hash.digest("hex")}  ${name}\n`;
  });
  writeFileSync(join(folder, "SHA256SUMS"), lines.join(""));
}

/** busybox, and the libraries that Node needs. */
async function makeSmallRoot(root: string): Promise<void> {
  for (const path of ["bin", "dev", "proc", "tmp", "usr/local", "etc", "run"])
    mkdirSync(join(root, path), { recursive: true });
  const busybox = (await check("sh", ["-c", "command -v busybox"])).trim();
  cpSync(busybox, join(root, "bin/busybox"), { dereference: true });
  for (const applet of (await check(busybox, ["--list"])).trim().split("\n")) {
    if (!["dpkg", "dpkg-deb", "busybox"].includes(applet)) symlinkSync("busybox", join(root, "bin", applet));
  }
  for (const [path = ""] of (await check("ldd", [process.execPath])).matchAll(/\/\S+\.so\S*/g)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    cpSync(path, join(root, path), { dereference: true });
  }
  cpSync("scripts/install.sh", join(root, "install.sh"));
}
