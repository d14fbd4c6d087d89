// Tests of the systemd unit under a real systemd, which confines dns11 as the unit says: dns11 serves, reloads its
// settings, is restarted after a kill, survives a restart of dockerd, and leaves nothing when it is stopped.

import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { dig } from "../support/client/dig.ts";
import { QueryLoop, failuresAfter } from "../support/client/query-loop.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { SYSTEM_PATH } from "../support/program/command.ts";
import { isAlive } from "../support/program/main-with-keeper.ts";
import { ENGINE_FOLDER, PROGRAM_FOLDER, ServiceManager } from "../support/program/service-manager.ts";
import { waitFor } from "../support/rig/wait.ts";

const UNIT = "dns11.service";
const PROGRAM = `${process.execPath} ${ENGINE_FOLDER}/program/dist/cmd/dns11.js`;
const ENGINE = `-H unix://${ENGINE_FOLDER}/docker.sock --state-dir /run/manager/dns11`;
// Paths of a test.
const TEST_PATHS = `[Service]
ExecStart=
ExecStart=${PROGRAM} run ${ENGINE} --config ${ENGINE_FOLDER}/dns11.yaml
ExecReload=
ExecReload=${PROGRAM} reload ${ENGINE} --pid $MAINPID
ExecStopPost=
ExecStopPost=-${PROGRAM} cleanup ${ENGINE}
StateDirectory=
Environment=STATE_DIRECTORY=/run/manager/dns11-state
StandardOutput=append:${ENGINE_FOLDER}/service.log
StandardError=append:${ENGINE_FOLDER}/service.log
`;

let engine: Engine;
let web: Container;
let manager: ServiceManager;

before(async () => {
  engine = await startEngine({ suite: "bookworm", liveRestore: true });
  await createNetwork(engine, "shop");
  web = await runContainer(engine, { name: "web", networks: ["shop"] });
  await runContainer(engine, { name: "db", networks: ["shop"] });
  writeFileSync(join(engine.folder, "dns11.yaml"), "version: 1\n");
  // A copy, because a test puts another version in its place.
  for (const part of ["cmd", "src"]) cpSync(join("dist", part), inProgram(`dist/${part}`), { recursive: true });
  cpSync("package.json", inProgram("package.json"));
  symlinkSync(join(PROGRAM_FOLDER, "node_modules"), inProgram("node_modules"));
  const unit = readFileSync("scripts/systemd/dns11.service", "utf8");
  manager = await ServiceManager.start(engine, { [UNIT]: unit, [`${UNIT}.d/test-paths.conf`]: TEST_PATHS });
});
after(async () => await engine[Symbol.asyncDispose]());

test("after start dns11 serves, confined as the unit says", async () => {
  const { code, stderr } = await manager.systemctl("start", UNIT);
  assert.equal(code, 0, stderr + log());
  await answeredWith(5);
  assert.match(await manager.show(UNIT, "StatusText"), /2 of 2 containers attached/);
  const status = readFileSync(`/proc/${await mainPid()}/status`, "utf8");
  // CAP_CHOWN, CAP_NET_ADMIN, CAP_SYS_PTRACE, CAP_SYS_ADMIN.
  for (const set of ["CapEff", "CapBnd"]) assert.match(status, new RegExp(`^${set}:\\t0000000000281001$`, "m"));
  assert.match(status, /^NoNewPrivs:\t1$/m);
  assert.match(status, /^Seccomp:\t2$/m);
  const mounts = readFileSync(`/proc/${await mainPid()}/mountinfo`, "utf8");
  assert.match(mounts, /^\S+ \S+ \S+ \S+ \/ ro[, ]/m);
  assert.match(mounts, /^\S+ \S+ \S+ \S+ \/run\/manager\/dns11 rw[, ]/m);
});

test("reload applies the settings file in the same process", async () => {
  const pid = await mainPid();
  writeFileSync(join(engine.folder, "dns11.yaml"), "version: 1\nttl: 9\n");
  const { code, stderr } = await manager.systemctl("reload", UNIT);
  assert.equal(code, 0, stderr);
  await answeredWith(9);
  assert.equal(await mainPid(), pid);
});

test("the same process continues when dockerd is restarted", async () => {
  const pid = await mainPid();
  await engine.restartDaemon();
  const late = await runContainer(engine, { name: "late", networks: ["shop"] });
  await waitFor("the new container's name", async () => {
    const { answer } = await dig(web, "+time=1", "late");
    return answer[0]?.ttl === 9 ? true : undefined;
  });
  assert.equal(await mainPid(), pid);
  await late.remove();
});

test("after a kill systemd restarts it", async () => {
  const pid = await mainPid();
  process.kill(pid, "SIGKILL");
  await waitFor("another process", async () => ([0, pid].includes(await mainPid()) ? undefined : true));
  await answeredWith(9);
  assert.equal(await manager.show(UNIT, "NRestarts"), "1");
});

test("when replaced, another process continues as the service and no query is lost", async () => {
  const pid = await mainPid();
  const restarts = await manager.show(UNIT, "NRestarts");
  await using loop = await QueryLoop.start(web, { name: "db", perSecond: 500 });
  const { code, stderr } = await manager.systemctl("kill", "--kill-who=main", "--signal=SIGUSR2", UNIT);
  assert.equal(code, 0, stderr);
  let failed = failedReplacements();
  await waitFor("another process", async () => {
    if (![0, pid].includes(await mainPid())) return true;
    // On a busy machine a replacement may take too long, and the old process goes on.
    if (failedReplacements() > failed) {
      failed = failedReplacements();
      await manager.systemctl("kill", "--kill-who=main", "--signal=SIGUSR2", UNIT);
    }
    return undefined;
  });
  await waitFor("the previous process to exit", () => (isAlive(pid) ? undefined : true));
  assert.deepEqual(failuresAfter(await loop.stop(), 0), [], log());
  await answeredWith(9);
  assert.equal(await manager.show(UNIT, "ActiveState"), "active");
  assert.equal(await manager.show(UNIT, "NRestarts"), restarts);
  const status = readFileSync(`/proc/${await mainPid()}/status`, "utf8");
  assert.match(status, /^CapBnd:\t0000000000281001$/m);
});

test("when replaced by a version that cannot take over, systemd starts that one, and follows it", async () => {
  const pid = await mainPid();
  const restarts = Number(await manager.show(UNIT, "NRestarts"));
  const cmd = inProgram("dist/cmd");
  const changed = readdirSync(cmd).filter((name) => {
    if (!name.endsWith(".js")) return false;
    const text = readFileSync(join(cmd, name), "utf8");
    const other = text.replace(/\bPROTOCOL_VERSION=\d+/, "PROTOCOL_VERSION=99");
    writeFileSync(join(cmd, name), other);
    return other !== text;
  });
  assert.ok(changed.includes("keeper-main.js") && changed.length > 1, changed.join(" "));
  await manager.systemctl("kill", "--kill-who=main", "--signal=SIGUSR2", UNIT);
  await waitFor("another process", async () => ([0, pid].includes(await mainPid()) ? undefined : true));
  await answeredWith(9);
  // It answers before it has told systemd that it serves.
  await waitFor("the service to be active", async () =>
    (await manager.show(UNIT, "ActiveState")) === "active" ? true : undefined,
  );
  assert.match(log(), /The running dns11 could not be taken over from, and has ended/);
  // Only the process that systemd follows serves, so that a stop ends it.
  assert.equal(log().split("running dns11 has another version, stopping it").length - 1, 1);
  assert.equal(Number(await manager.show(UNIT, "NRestarts")), restarts + 1);
});

function inProgram(path: string): string {
  return join(engine.folder, "program", path);
}

function failedReplacements(): number {
  return log().split("the new process exited before it took over").length - 1;
}

test("a failed replacement changes nothing", async () => {
  const pid = await mainPid();
  const earlier = failedReplacements();
  writeFileSync(join(engine.folder, "dns11.yaml"), "version: 1\nttl: x\n");
  await manager.systemctl("kill", "--kill-who=main", "--signal=SIGUSR2", UNIT);
  await waitFor("the replacement to exit", () => (failedReplacements() > earlier ? true : undefined));
  writeFileSync(join(engine.folder, "dns11.yaml"), "version: 1\nttl: 9\n");
  await answeredWith(9);
  assert.equal(await mainPid(), pid);
});

test("an upgrade of the package replaces what runs, unless the new version does not accept the settings", async () => {
  // systemctl asks the manager of this test, which is a user's; the program is the one that the unit names.
  const commands = { systemctl: 'shift; exec /usr/bin/systemctl --user "$@"', dns11: `exec ${PROGRAM} "$@"` };
  mkdirSync(inProgram("bin"));
  for (const [name, text] of Object.entries(commands))
    writeFileSync(inProgram(`bin/${name}`), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  const upgrade = async (): Promise<string> => {
    const path = `PATH=${ENGINE_FOLDER}/program/bin:${SYSTEM_PATH}`;
    const postinst = `${PROGRAM_FOLDER}/scripts/deb/postinst`;
    const { code, stderr } = await manager.enter("env", path, "sh", postinst, "configure", "0.1.0");
    assert.equal(code, 0, stderr);
    return stderr;
  };
  const pid = await mainPid();
  writeFileSync(join(engine.folder, "dns11.yaml"), "version: 1\nttl: x\n");
  assert.match(await upgrade(), /dns11\.yaml:2:6: ttl: invalid duration "x"[^]*the running version goes on/);
  assert.equal(await mainPid(), pid);
  writeFileSync(join(engine.folder, "dns11.yaml"), "version: 1\nttl: 8\n");
  assert.equal(await upgrade(), "");
  assert.notEqual(await mainPid(), pid);
  await answeredWith(8);
  assert.equal(await manager.show(UNIT, "ActiveState"), "active");
});

test("with invalid settings it exits and is not restarted", async () => {
  writeFileSync(join(engine.folder, "dns11.yaml"), "version: 1\nttl: x\n");
  await manager.systemctl("restart", UNIT);
  await waitFor("the service to have failed", async () =>
    (await manager.show(UNIT, "ActiveState")) === "failed" ? true : undefined,
  );
  assert.equal(await manager.show(UNIT, "ExecMainStatus"), "2");
  assert.match(log(), /dns11\.yaml:2:6: ttl: invalid duration "x"/);
  writeFileSync(join(engine.folder, "dns11.yaml"), "version: 1\n");
  await manager.systemctl("start", UNIT);
  await answeredWith(5);
});

// Each start has a mount namespace of its own, so the keeper knows the next process by its control group.
test("where a policy is enforced, the keeper refuses while the service is away, and the next start goes on", async () => {
  const enforced = "version: 1\npolicies:\n  all: {for: [network=shop], mode: enforce, allow: [a.test]}\n";
  writeFileSync(join(engine.folder, "dns11.yaml"), enforced);
  assert.equal((await manager.systemctl("reload", UNIT)).code, 0);
  await waitFor("the policy", async () => ((await dig(web, "b.test")).status === "NXDOMAIN" ? true : undefined));
  const pid = await mainPid();
  process.kill(pid, "SIGKILL");
  await waitFor("another process", async () => ([0, pid].includes(await mainPid()) ? undefined : true));
  await answeredWith(5);
  assert.match(log(), /policies are enforced, refusing all queries/);
  assert.equal((await manager.systemctl("stop", UNIT)).code, 0);
  assert.equal(await manager.show(UNIT, "Result"), "success", log());
  await waitFor("the keeper to refuse", async () => ((await dig(web, "db")).status === "SERVFAIL" ? true : undefined));
  assert.match(log(), /The keeper refuses the queries of 2 containers/);
  assert.equal((await manager.systemctl("start", UNIT)).code, 0, log());
  await answeredWith(5);
  writeFileSync(join(engine.folder, "dns11.yaml"), "version: 1\n");
  assert.equal((await manager.systemctl("reload", UNIT)).code, 0);
  await waitFor("no policy", async () => ((await dig(web, "b.test")).status === "NXDOMAIN" ? undefined : true));
});

test("stop hands all containers back to Docker's resolver and removes the state", async () => {
  const { code } = await manager.systemctl("stop", UNIT);
  assert.equal(code, 0);
  assert.equal(await manager.show(UNIT, "Result"), "success", log());
  await answeredWith(600);
  const id = ((await engine.api("/info")) as { ID: string }).ID;
  assert.match(log(), /^removed \/run\/manager\/dns11\//m);
  assert.ok(!existsSync(join(engine.folder, "run/manager/dns11", id)));
});

async function mainPid(): Promise<number> {
  return Number(await manager.show(UNIT, "MainPID"));
}

async function answeredWith(ttl: number): Promise<void> {
  try {
    await waitFor(`an answer with a TTL of ${ttl}`, async () =>
      (await dig(web, "+time=1", "db")).answer[0]?.ttl === ttl ? true : undefined,
    );
  } catch (error) {
    throw new Error(log(), { cause: error });
  }
}

function log(): string {
  const path = join(engine.folder, "service.log");
  return existsSync(path) ? readFileSync(path, "utf8") : "(no log)";
}
