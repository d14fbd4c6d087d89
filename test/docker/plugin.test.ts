// docker dns: the docker command finds the plugin, lists it, passes its own flags on, and completes its words; container names
// are completed while dns11 runs.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";

import type { LeasesReport } from "../../src/api/lease.ts";
import type { Status } from "../../src/api/status.ts";
import { type CommandResult, SYSTEM_PATH, run } from "../support/program/command.ts";
import { createNetwork, runContainer } from "../support/engine/container.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { getJson } from "../support/program/unix-http.ts";
import { uniqueName } from "../support/rig/netns.ts";
import { hold, removeTracked } from "../support/rig/reaper.ts";
import { untilSame, waitFor } from "../support/rig/wait.ts";

let engine: Engine;
let instance: Dns11;
let config: string;
// Debian's docker, and another one if it is installed.
const CLIENTS = ["/usr/bin/docker", "/usr/local/bin/docker"].filter((path) => existsSync(path));

const FIRST_WITH_SOCKET = 25;

before(async () => {
  engine = await startEngine({ suite: "bookworm" });
  await createNetwork(engine, "shop");
  await runContainer(engine, { name: "web", networks: ["shop"] });
  await runContainer(engine, { name: "db", networks: ["shop"] });
  instance = await startDns11(engine);
  config = join(engine.folder, "docker-config");
  mkdirSync(join(config, "cli-plugins"), { recursive: true });
  symlinkSync(resolve("dist/cmd/docker-dns.js"), join(config, "cli-plugins/docker-dns"));
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

for (const client of CLIENTS) {
  test(`${client} lists the plugin with its version`, async () => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
    const { code, stdout } = await docker(client, ["help"]);
    assert.equal(code, 0);
    assert.match(stdout, /^ +dns\* +DNS resolver for containers, outside dockerd/m);
    const info = await docker(client, ["-H", engine.host, "info", "--format", "{{json .ClientInfo.Plugins}}"]);
    const plugins = JSON.parse(info.stdout) as { Name: string; Version: string; Err?: unknown }[];
    const plugin = plugins.find(({ Name }) => Name === "dns");
    assert.deepEqual([plugin?.Version, plugin?.Err], [version, undefined]);
  });

  test(`${client} dns status uses the engine of docker's own flag`, async () => {
    const words = ["dns", "status", "--json", "--state-dir", instance.stateDir];
    for (const flag of [["-H", engine.host], [`--host=${engine.host}`], ["-D", `-H${engine.host}`]]) {
      const { code, stdout, stderr } = await docker(client, [...flag, ...words]);
      assert.deepEqual([code, stderr], [0, ""]);
      const { containers } = JSON.parse(stdout) as { containers: { name: string; state: string }[] };
      assert.deepEqual(containers.map(({ name }) => name).toSorted(), ["db", "web"]);
    }
  });

  test(`${client} dns status uses the engine of a docker context`, async () => {
    const created = await docker(client, [
      "context",
      "create",
      `c${CLIENTS.indexOf(client)}`,
      "--docker",
      `host=${engine.host}`,
    ]);
    assert.equal(created.code, 0, created.stderr);
    const { code, stdout } = await docker(client, [
      "--context",
      `c${CLIENTS.indexOf(client)}`,
      "dns",
      "status",
      "--state-dir",
      instance.stateDir,
    ]);
    assert.equal(code, 0);
    assert.match(stdout, /containers +2 of 2 served/);
  });

  test(`${client} dns: help has this command name, and the exit code of a failure is passed on`, async () => {
    const help = (await docker(client, ["dns", "status", "--help"])).stdout;
    assert.match(help, /^Examples:\n {2}docker dns status .*\n\nUsage: docker dns status/);
    assert.match((await docker(client, ["help", "dns", "cache", "flush"])).stdout, /^Usage: docker dns cache flush/m);
    const { code, stderr } = await docker(client, ["dns", "nothing"]);
    assert.equal(code, 2);
    assert.match(stderr, /unknown command 'nothing'/);
  });
}

for (const client of CLIENTS) {
  test(`${client} dns fault ends with its rules when docker is told to end, also without a terminal`, async (t) => {
    const major = Number(/version (\d+)/.exec((await run(client, ["--version"])).stdout)?.[1]);
    if (major < FIRST_WITH_SOCKET) return t.skip("this docker tells its plugins nothing");
    const words = ["--config", config, "-H", engine.host, "dns", "fault", "db", "--in", "web", "--nxdomain"];
    const child = spawn(client, [...words, "--state-dir", instance.stateDir], { stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout, "data");
    const [place = ""] = readdirSync(instance.stateDir);
    const leases = async (): Promise<number> => {
      const report = await getJson(join(instance.stateDir, place, "control.sock"), "/v1/leases");
      return (report as LeasesReport).leases.length;
    };
    assert.equal(await leases(), 1);
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await ended;
    await waitFor("the end of the rules", async () => ((await leases()) === 0 ? true : undefined));
  });
}

test("docker completes the words of docker dns", async () => {
  const { stdout } = await docker("docker", ["__complete", "dns", "chec"]);
  assert.match(stdout, /^check-config\tValidate a settings file\n:4\n/);
  const files = await docker("docker", ["__complete", "dns", "check-config", ""]);
  assert.match(files.stdout, /^:0\n/m);
});

test("container names are completed from the instance that flags or the environment select", async () => {
  const flags = ["-H", engine.host, "--state-dir", instance.stateDir];
  // On a busy machine the line being typed does not wait for the names.
  const offered = async (words: readonly string[], env?: NodeJS.ProcessEnv): Promise<string[]> =>
    (await dns11(["__complete", "kind", "detach", ...words], { env })).stdout.trimEnd().split("\n").toSorted();
  await untilSame("the name that flags select", async () => await offered([...flags, "w"]), [":4", "web"]);
  const env = { DOCKER_HOST: engine.host, DNS11_STATE_DIR: instance.stateDir };
  await untilSame("the names that variables select", async () => await offered([""], env), [":4", "db", "web"]);
});

// The last one: it ends the shared instance.
test("docker dns run restarts itself with fewer capabilities, and never a program in the working directory", async () => {
  const folder = mkdtempSync(join(engine.folder, "trap-"));
  writeFileSync(
    join(folder, "docker-dns"),
    `require("fs").writeFileSync(${JSON.stringify(join(folder, "executed"))}, "")`,
  );
  await instance[Symbol.asyncDispose]();
  // In the temporary folder, because socket paths must be short.
  const stateDir = mkdtempSync(join(tmpdir(), "d11-"));
  const leftovers = { id: uniqueName(), stateDir, folder: stateDir };
  hold(leftovers);
  const args = ["--config", config, "-H", engine.host, "dns", "run", "--state-dir", stateDir];
  const child = spawn("docker", args, {
    cwd: folder,
    stdio: "ignore",
    env: { ...process.env, PATH: SYSTEM_PATH, DNS11_METRICS_ADDR: "off" },
  });
  const ended = once(child, "exit");
  try {
    const status = await waitFor("dns11 to serve", async () => {
      const [place = ""] = readdirSync(stateDir);
      const found = (await getJson(join(stateDir, place, "control.sock"), "/v1/status").catch(() => undefined)) as
        | Status
        | undefined;
      return found?.isReady === true ? found : undefined;
    });
    assert.deepEqual(
      new Set(status.containers.map(({ name, state }) => `${name} ${state}`)),
      new Set(["db attached", "web attached"]),
    );
    for (const { permitted } of status.capabilities) assert.ok(!permitted.includes("CAP_SYS_MODULE"));
    assert.equal(existsSync(join(folder, "executed")), false);
    process.kill(status.pid, "SIGTERM");
  } finally {
    child.kill("SIGTERM");
    await ended;
    await removeTracked(leftovers);
  }
});

async function docker(client: string, args: readonly string[]): Promise<CommandResult> {
  const env = { DOCKER_CONFIG: config, DOCKER_HOST: undefined, DOCKER_CONTEXT: undefined };
  return await run(client, args, { env });
}
