/**
 * A rootless engine, served by a dns11 of its user: names, forwarding, commands, kills and restarts work as they do for
 * root, and nobody else's rights are involved.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, existsSync, lstatSync, readFileSync, readdirSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { dataOf, dig } from "../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type RootlessEngine, startRootlessEngine } from "../support/engine/rootless-engine.ts";
import { INSIDE, OTHER_USER, OWNER } from "../support/engine/rootless-host.ts";
import { Dns11 } from "../support/program/dns11.ts";
import { isAlive } from "../support/program/main-with-keeper.ts";
import { textOf } from "../support/rig/text-of.ts";
import { waitFor } from "../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../support/servers/upstream.ts";

const NETWORK = "net";
const UNIT = "dns11.service";
/** TTLs by which a reply tells who answered. */
const [OF_DNS11, OF_DOCKER] = [5, 600];

let engine: RootlessEngine;
let upstream: Upstream;
let web: Container;
let client: Container;
/** Serves from the start until a test ends it. */
let instance: Dns11;

before(async () => {
  engine = await startRootlessEngine();
  upstream = await startUpstream(engine);
  await createNetwork(engine, NETWORK);
  web = await runContainer(engine, { name: "web", networks: [NETWORK] });
  client = await runContainer(engine, { name: "client", networks: [NETWORK] });
  instance = await startOwn("--default-bridge", "names");
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

/** A dns11 that the engine's user starts, without telling it where anything is. */
async function startOwn(...args: string[]): Promise<Dns11> {
  const own = new Dns11("", {
    prefix: [],
    program: engine.dns11Command(OWNER),
    stateDir: join(engine.runtime, "dns11"),
    isOnItsOwn: true,
    args,
  });
  await own.waitUntilReady();
  return own;
}

test("the user's dns11 serves the containers of the user's engine, with the user's rights", async () => {
  const plain = await runContainer(engine, { name: "plain" });
  await instance.waitFor("plain", "attached");
  const reply = await dig(client, "web");
  assert.deepEqual([dataOf(reply), reply.answer[0]?.ttl], [[web.address(NETWORK)], OF_DNS11]);
  assert.deepEqual(dataOf(await dig(client, "-x", web.address(NETWORK))), [`web.${NETWORK}.`]);
  // On the default bridge, a container queries what its resolv.conf names: the user's network.
  assert.deepEqual(dataOf(await dig(plain, "@10.0.2.3", "plain")), [plain.address("bridge")]);
  const name = "outside.ok.test";
  assert.equal((await dig(client, name)).status, "NOERROR");
  assert.notEqual((await upstream.queriesFor(name)).length, 0);

  const { pid, keeper, ruleBackend, capabilities } = await instance.status();
  for (const each of [pid, keeper.pid ?? 0]) {
    assert.equal(statSync(`/proc/${each}`).uid, OWNER);
    assert.notEqual(readlinkSync(`/proc/${each}/ns/user`), readlinkSync("/proc/self/ns/user"));
  }
  assert.equal(ruleBackend, "nft-owner");
  assert.equal(
    capabilities.every(({ permitted }) => !permitted.includes("CAP_DAC_OVERRIDE")),
    true,
  );
  await plain.remove();

  for (const [words, expected] of [
    [
      ["status"],
      /2 of 2 served[^]*nft-owner; answers: process \(bpf MAP_CREATE of \w+ failed: EPERM\); keeper: watching/,
    ],
    [["ps"], /client +ok[^]*web +ok/],
    [["explain", "web", "client"], /web \(A\) in client: [\d.]+ +web/],
    [["lookup", "web", "client"], /NOERROR from 127\.0\.0\.11/],
    [["doctor", "--all"], /ok +rootless engine +its user and network namespaces can be entered, .* 21011\n/],
  ] as const) {
    const result = await engine.dns11As(OWNER, ...words);
    assert.equal(result.code, 0, `${words.join(" ")}: ${result.stdout}${result.stderr}`);
    assert.match(result.stdout, expected);
  }
  const bundle = await engine.dns11As(OWNER, "doctor", "--bundle", `${INSIDE.runtime}/report.tar.gz`);
  assert.match(bundle.stderr, /^wrote .*report\.tar\.gz \(\d+ files/m, bundle.stdout);
});

test("another user and root are refused, with what to do", async () => {
  const [folder] = readdirSync(instance.stateDir);
  assert.equal(lstatSync(join(instance.stateDir, folder ?? "", "control.sock")).mode & 0o777, 0o600);
  const host = ["-H", `unix://${INSIDE.runtime}/docker.sock`];
  const hidden = await engine.dns11As(OTHER_USER, "run", ...host);
  assert.equal(hidden.code, 3, hidden.stderr);
  // Where the user's folder is open to others, its socket tells whose it is.
  chmodSync(engine.runtime, 0o711);
  const seen = await engine.dns11As(OTHER_USER, "run", ...host);
  chmodSync(engine.runtime, 0o700);
  const root = await engine.dns11As(0, "run", ...host, "--state-dir", "/run/dns11");
  for (const { code, stderr } of [seen, root]) {
    assert.equal(code, 3, stderr);
    assert.match(stderr, /rootless, and belongs to the user with the ID 21011\n +Run dns11 as that user, without sudo/);
  }
  const doctor = await engine.dns11As(0, "doctor", ...host);
  assert.equal(doctor.code, 1, doctor.stderr);
  assert.match(doctor.stdout, /PROBLEM +Docker host: rootless engine: .* belongs to the user with the ID 21011/);
});

test("after SIGKILL its keeper hands the containers back, and nothing stays", async () => {
  const { keeper } = await waitFor("its keeper", async () => {
    const status = await instance.status();
    return status.keeper.state === "watching" && status.keeper.namespaces === 2 ? status : undefined;
  });
  assert.equal((await dig(client, "web")).answer[0]?.ttl, OF_DNS11);
  instance.kill("SIGKILL");
  await waitFor("Docker's answer", async () =>
    (await dig(client, "+time=1", "+tries=3", "web")).answer[0]?.ttl === OF_DOCKER ? true : undefined,
  );
  await waitFor("its keeper to end", () => (isAlive(keeper.pid ?? 0) ? undefined : true));
  assert.doesNotMatch((await client.enter("nft", ["list", "tables"])).stdout, /dns11/);
});

test("without nsenter, or where it is forbidden, run and doctor say what to do", async () => {
  const nsenter = "/usr/bin/nsenter";
  await engine.onMachine("mv", nsenter, `${nsenter}.away`);
  const missing = await engine.dns11As(OWNER, "run");
  await engine.onMachine("cp", "/bin/false", nsenter);
  const forbidden = await engine.dns11As(OWNER, "doctor");
  await engine.onMachine("mv", `${nsenter}.away`, nsenter);
  assert.equal(missing.code, 3, missing.stderr);
  assert.match(missing.stderr, /nsenter, which is not installed\n +Install the package util-linux/);
  assert.equal(forbidden.code, 1, forbidden.stderr);
  assert.match(forbidden.stdout, /PROBLEM +Docker host: rootless engine: Cannot enter .*nsenter ended with 1\n +Fix: /);
});

test("a second process of the user takes over, and the machine's names are refused with the reason", async () => {
  await using first = await startOwn();
  await using second = await startOwn("--replace", "--host-names", "capture");
  // Its keeper, which the other one has now, holds its log open.
  assert.equal(await first.ended(), 0, first.log);
  await second.logs(/took over from the previous process/);
  const skipped = await second.waitFor("host", "skipped");
  assert.match(skipped.reason ?? "", /rootless engine has no rights over the machine's network/);
  assert.equal((await dig(client, "web")).answer[0]?.ttl, OF_DNS11);
});

test("with a restarted engine it ends and says so, and a new one serves an engine whose network is pasta", async () => {
  instance = await startOwn();
  await engine.restartDaemon("DOCKERD_ROOTLESS_ROOTLESSKIT_NET=pasta");
  assert.equal(await instance.exited, 1, instance.log);
  await instance.logs(/rootless engine was restarted, and its namespaces are new\n +Start dns11 again/);
  for (const each of [web, client]) await each.start();
  await using again = await startOwn();
  await again.waitFor("web", "attached");
  const reply = await dig(client, "web");
  assert.deepEqual([dataOf(reply), reply.answer[0]?.ttl], [[web.address(NETWORK)], OF_DNS11]);
  assert.equal((await dig(client, "pasta.ok.test")).status, "NOERROR");
  assert.notEqual((await upstream.queriesFor("pasta.ok.test")).length, 0);
  assert.equal(await again.stop(), 0, again.log);
});

/**
 * As Docker from 29.5 on, which 28.5 cannot do by itself: what listens at the socket, as a program called dockerd, stays in the machine's
 * network, and its containers are connected to the network that rootlesskit has detached.
 */
const DETACHED_ENGINE = `
const { spawn } = require("node:child_process");
const { createServer, connect } = require("node:net");
const [socket, inner] = ["docker.sock", "inner.sock"].map((name) => process.env.XDG_RUNTIME_DIR + "/" + name);
const words = ["--net=" + process.env.ROOTLESSKIT_STATE_DIR + "/netns", "dockerd", ...process.argv.slice(2), "--host", "unix://" + inner];
const dockerd = spawn("nsenter", words, { stdio: "inherit" });
dockerd.on("exit", (code) => process.exit(code ?? 1));
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => dockerd.kill(signal));
require("node:fs").rmSync(socket, { force: true });
createServer({ allowHalfOpen: true }, (client) => {
  const server = connect({ path: inner, allowHalfOpen: true });
  for (const each of [client, server]) each.on("error", () => [client, server].map((one) => one.destroy()));
  client.pipe(server).pipe(client);
}).listen(socket);
`;

for (const [network, setting] of [
  ["slirp4netns", ""],
  ["pasta", " DOCKERD_ROOTLESS_ROOTLESSKIT_NET=pasta"],
] as const) {
  test(`an engine in the machine's network is served in that of its containers, ${network}'s, as with rootlesskit's --detach-netns`, async () => {
    const prepare = `mkdir -p /opt/detached && cd /opt/detached && printf %s "$0" > engine.cjs && touch dockerd && mount --bind ${INSIDE.node} dockerd &&
    printf '#!/bin/sh\\nexec /opt/detached/dockerd /opt/detached/engine.cjs "$@"\\n' > start && chmod 755 start`;
    await engine.onMachine("sh", "-c", prepare, DETACHED_ENGINE);
    await engine.restartDaemon(
      `DOCKERD=/opt/detached/start DOCKERD_ROOTLESS_ROOTLESSKIT_FLAGS=--detach-netns${setting}`,
    );
    const isEngine = (pid: string): boolean => textOf(`/proc/${pid}/cmdline`).startsWith("/opt/detached/dockerd");
    const listener = readdirSync("/proc").filter(Number).find(isEngine) ?? assert.fail();
    assert.equal(statSync(`/proc/${listener}/ns/net`).ino, statSync(engine.netnsPath).ino, "it is in the machine's");
    for (const each of [web, client]) await each.start();
    await using detached = await startOwn();
    const reply = await dig(client, "web");
    assert.deepEqual([dataOf(reply), reply.answer[0]?.ttl], [[web.address(NETWORK)], OF_DNS11]);
    const name = `detached-${network}.ok.test`;
    assert.equal((await dig(client, name)).status, "NOERROR");
    assert.notEqual((await upstream.queriesFor(name)).length, 0);
    const doctor = await engine.dns11As(OWNER, "doctor", "--all");
    assert.match(doctor.stdout, /ok +rootless engine +its user and network namespaces can be entered/);
    assert.doesNotMatch(doctor.stdout, /PROBLEM/);
    assert.equal(await detached.stop(), 0, detached.log);
  });
}

test("a process in the user's namespace and the machine's network that does not say where its containers' network is, is refused", async () => {
  const listen = "require('net').createServer().listen(process.argv[1])";
  const socket = `${INSIDE.runtime}/detached.sock`;
  const [command = "", ...args] = engine.commandAs(
    OWNER,
    "unshare",
    "--user",
    "--map-root-user",
    INSIDE.node,
    "-e",
    listen,
    socket,
  );
  const listener = spawn(command, args, { stdio: "ignore" });
  try {
    await waitFor("the socket", () => (existsSync(join(engine.runtime, "detached.sock")) ? true : undefined));
    const { code, stderr } = await engine.dns11As(OWNER, "run", "-H", `unix://${socket}`);
    assert.equal(code, 3, stderr);
    assert.match(stderr, /process \d+ is in the machine's network.*\n +Start it with dockerd-rootless\.sh/);
  } finally {
    listener.kill("SIGKILL");
  }
});

test("as a unit of the user it serves, is started again after a kill and with the engine, and stops cleanly", async () => {
  const text = readFileSync("scripts/systemd/user/dns11.service", "utf8");
  const manager = await engine.startUserManager(
    UNIT,
    text.replaceAll("/usr/bin/dns11", `${INSIDE.node} ${INSIDE.program}`),
  );
  const served = async (): Promise<void> =>
    void (await waitFor("dns11's answer", async () =>
      (await dig(client, "+time=1", "+tries=3", "web")).answer[0]?.ttl === OF_DNS11 ? true : undefined,
    ));
  const pidNow = async (): Promise<number> => Number(await manager.show(UNIT, "MainPID"));
  const other = async (pid: number): Promise<void> =>
    void (await waitFor("another process", async () => ([0, pid].includes(await pidNow()) ? undefined : true)));
  const { code, stderr } = await manager.systemctl("start", UNIT);
  assert.equal(code, 0, stderr);
  await served();
  assert.match(await manager.show(UNIT, "StatusText"), /2 of 2 containers attached/);
  const pid = await pidNow();
  assert.equal(statSync(`/proc/${pid}`).uid, OWNER);
  assert.match(readFileSync(`/proc/${pid}/status`, "utf8"), /^NoNewPrivs:\t1$/m);
  process.kill(pid, "SIGKILL");
  await other(pid);
  await served();
  const second = await pidNow();
  await engine.restartDaemon();
  for (const each of [web, client]) await each.start();
  await other(second);
  await served();
  assert.equal((await manager.systemctl("stop", UNIT)).code, 0);
  assert.equal(await manager.show(UNIT, "Result"), "success");
  assert.equal((await dig(client, "web")).answer[0]?.ttl, OF_DOCKER);
});
