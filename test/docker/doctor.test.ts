/**
 * Doctor: a healthy container has no findings, and it is found when dns11 itself is ill or gone, or when a check could not run.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { type Server, createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { EXIT } from "../../cmd/process/exit-code.ts";
import { PROGRAM } from "../support/program/built.ts";
import { run } from "../support/program/command.ts";
import { createNetwork, runContainer } from "../support/engine/container.ts";
import { dns11, startDns11 } from "../support/program/dns11.ts";
import { withoutOwnedTables } from "../support/program/without-owned-tables.ts";
import { startEngine } from "../support/engine/engine.ts";
import {
  NETWORK,
  UPSTREAM,
  engine,
  folder,
  doctor,
  doctorOf,
  reportOf,
  findingsOf,
  assertFinding,
  notOkIn,
} from "./doctor/examination.ts";

test("a healthy container has no problems, with dns11 and without it", async () => {
  await using _ = await runContainer(engine, { name: "well", networks: [NETWORK] });
  const without = await doctor(undefined);
  assert.deepEqual([without.code, notOkIn(reportOf(without, "well"))], [0, []]);
  assertFinding(
    without,
    "Docker host",
    "dns11",
    "warning",
    /not running for this engine; containers use Docker's resolver/,
  );
  assertFinding(without, "well", "attachment", "ok", /^Docker's resolver/);
  assertFinding(without, "well", "docker-rules", "ok", /^iptables/);
  await using instance = await startDns11(engine);
  const served = await doctor(instance);
  assert.deepEqual([served.code, served.containers.flatMap(notOkIn), notOkIn(served.machine)], [0, [], []]);
  assertFinding(served, "Docker host", "dns11", "ok", /process \d+, .*ready/);
  assertFinding(served, "well", "attachment", "ok", /^dns11, since .*, verified/);
  assertFinding(served, "well", "listener", "ok", /^udp \d+, tcp \d+$/);
  assertFinding(served, "well", "upstream", "ok", /^host\(10\.53\.0\.1\): udp NXDOMAIN in .* ms, tcp NXDOMAIN/);
  const { stdout } = await dns11(["doctor", "-H", engine.host, "--state-dir", instance.stateDir, "well"]);
  assert.match(
    stdout,
    /^NOTE {5}well: served by dns11 since \S+Z\n\nhealthy \(\d+ checks passed, --all shows them\)\n$/,
  );
  const alone = await dns11(["doctor", "-H", engine.host, "--state-dir", folder, "well"]);
  assert.match(
    alone.stdout,
    /^NOTE {5}well: not served by dns11: Docker's resolver answers, because dns11 is not running\n/,
  );
  const all = await dns11(["doctor", "-H", engine.host, "--state-dir", instance.stateDir, "well", "--all"]);
  assert.match(
    all.stdout,
    /^NOTE .*\n\nDocker host\nSTATE +CHECK +FINDING\n[\s\S]*\nwell\nSTATE +CHECK +FINDING\nok +resolver +dns11/,
  );
  assert.match(all.stdout, /\nhealthy \(\d+ checks passed\)\n$/);
});

/** Serves JSON answers by path on a unix socket. */
function serveJson(socket: string, answers: Readonly<Record<string, unknown>>): Server {
  return createServer((connection) => {
    connection.on("data", (request) => {
      const path = / (\/[^ ?]*)/.exec(request.toString())?.[1] ?? "";
      const body = JSON.stringify(answers[path] ?? { error: `Unknown path "${path}"` });
      const head = `connection: close\r\ncontent-length: ${Buffer.byteLength(body)}`;
      connection.end(`HTTP/1.1 ${path in answers ? 200 : 404} OK\r\n${head}\r\n\r\n${body}`);
    });
  }).listen(socket);
}

test("a dns11 that is not ready or disconnected from the engine is a warning that names what is missing", async () => {
  await using _ = await runContainer(engine, { name: "late", networks: [NETWORK] });
  const instance = await startDns11(engine);
  const status = await instance.status();
  const [sub = ""] = readdirSync(instance.stateDir);
  await instance.stop();
  // This state is too short to catch: the status of a real instance, changed to that of one that verifies the container.
  const containers = status.containers.map((each) => ({ ...each, state: "verifying" }));
  const path = join(instance.stateDir, sub, "control.sock");
  const late = serveJson(path, { "/v1/status": { ...status, isReady: false, containers } });
  const result = await doctor(instance, "late");
  late.close();
  assertFinding(result, "Docker host", "dns11", "warning", /not ready: waiting for late$/);
  assertFinding(result, "late", "attachment", "warning", /dns11 is attaching \(verifying\)/);
  const away = serveJson(path, { "/v1/status": { ...status, engine: { ...status.engine, isConnected: false } } });
  assertFinding(await doctor(instance, "late"), "Docker host", "dns11", "warning", /disconnected from the engine/);
  away.close();
  await instance[Symbol.asyncDispose]();
});

test("a dns11 that hangs and one that was killed are found, and --fix removes what it left behind", async () => {
  // A keeper would kill a hung instance.
  const instance = await startDns11(engine, { settings: { keeper: "off" } });
  try {
    instance.kill("SIGSTOP");
    const hung = await doctor(instance);
    assert.equal(hung.code, 1);
    assertFinding(
      hung,
      "Docker host",
      "dns11",
      "problem",
      /holds the lock .* but does not respond.*no response in time/,
    );
    instance.kill("SIGCONT");
    instance.kill("SIGKILL");
    await instance.exited;
    const killed = await doctor(instance);
    assertFinding(killed, "Docker host", "dns11", "warning", /not running/);
    assertFinding(killed, "Docker host", "leftovers", "warning", /stale control socket .*control\.sock$/);
    const fixed = await doctor(instance, "--fix");
    assert.match(fixed.machine.did.join("\n"), /removed .*d11-state/);
    assert.deepEqual(findingsOf(fixed.machine, "leftovers"), []);
  } finally {
    await instance[Symbol.asyncDispose]();
  }
});

test("the exit code says that a check could not run: no engine, no capability; or that there is no such container", async () => {
  const away = await dns11(["doctor", "-H", `unix://${folder}/nothing.sock`]);
  assert.equal(away.code, EXIT.unchecked);
  assert.match(
    away.stdout,
    /UNKNOWN +Docker host: Docker Engine: No engine socket at .*\n +Fix: Check that Docker is installed and running/,
  );
  const unknown = await dns11(["doctor", "-H", engine.host, "nobody"]);
  assert.deepEqual([unknown.code, unknown.stdout], [EXIT.usage, ""]);
  assert.match(unknown.stderr, /^dns11: No running container or service named "nobody"\n {2}dns11 ps lists/);
  const program = ["--", process.execPath, PROGRAM, "doctor", "-H", engine.host];
  const unprivileged = await run("setpriv", ["--bounding-set", "-net_admin", ...program]);
  assert.equal(unprivileged.code, EXIT.unchecked, unprivileged.stderr);
  assert.match(
    unprivileged.stdout,
    /UNKNOWN +Docker host: capabilities: Missing capabilities: CAP_NET_ADMIN \(to install rules there\)\n +Fix: .*--cap-add/,
  );
});

test("a kernel without owned tables is a warning, and an engine that is too old is a problem", async () => {
  const program = [process.execPath, PROGRAM, "doctor", "--json", "-H", engine.host];
  const [command = "", ...args] = [...(await withoutOwnedTables(folder)), ...program];
  const unowned = await run(command, args);
  assert.equal(unowned.code, 0, unowned.stderr);
  assert.match(
    unowned.stdout,
    /"code":"kernel",[^}]*"warning",[^}]*supports only the rule backend nft, whose rules stay when dns11/,
  );
  // The rig has no such old engine; this one gives the answers of a real engine, with an older version.
  const answers: Readonly<Record<string, unknown>> = {
    "/version": { ...((await engine.api("/version")) as object), Version: "19.03.8" },
    "/info": await engine.api("/info"),
    "/containers/json": [],
  };
  assert.match(
    await doctorOfFake(answers),
    /PROBLEM +Docker host: Docker Engine: Docker 19\.03\.8 is not supported\n +Fix: Use Docker 20\.10/,
  );
});

/** The doctor's output for an engine that gives these answers. */
async function doctorOfFake(answers: Readonly<Record<string, unknown>>): Promise<string> {
  const socket = join(folder, "fake.sock");
  const server = serveJson(socket, answers);
  const { code, stdout, stderr } = await dns11(["doctor", "-H", `unix://${socket}`]);
  server.close();
  assert.equal(code, 1, stdout + stderr);
  return stdout;
}

test("with Docker 28 and no nameserver on the host, that is one warning, of the host, if a container needs one; an invalid one is a warning", async () => {
  await using current = await startEngine({ suite: "forky", resolvConf: "search nowhere\n" });
  await createNetwork(current, NETWORK);
  await createNetwork(current, "inside", { internal: true });
  await using __ = await runContainer(current, { name: "alone", networks: ["inside"] });
  const unneeded = await doctorOf(current, join(folder, "no-instance"));
  assertFinding(unneeded, "Docker host", "host-resolv-conf", "ok", /^no nameserver, and no container needs one$/);
  await using _ = await runContainer(current, { name: "web", networks: [NETWORK] });
  const result = await doctorOf(current, join(folder, "no-instance"), "web");
  assert.deepEqual([result.code, notOkIn(reportOf(result, "web"))], [0, []]);
  assertFinding(
    result,
    "web",
    "upstream",
    "ok",
    /^none: only container names resolve; the Docker host has no nameserver$/,
  );
  assertFinding(
    result,
    "Docker host",
    "host-resolv-conf",
    "warning",
    /^no nameserver, so 1 container without --dns has no/,
  );
  assertFinding(result, "web", "docker-rules", "ok", /./);

  const file = `nameserver ${UPSTREAM}\\nnameserver 10.53.1\\n`;
  const write = ["-t", String(current.hostPid), "-m", "sh", "-c", `printf '${file}' > /etc/resolv.conf`];
  assert.equal((await run("nsenter", write)).code, 0);
  const typo = await doctorOf(current, join(folder, "no-instance"));
  assertFinding(typo, "Docker host", "host-resolv-conf", "warning", /^invalid nameserver 10\.53\.1$/);
});
