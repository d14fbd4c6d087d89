// @ts-check
/**
 * The demonstration of `make run`: a private engine with the project of docs/tour.md, in which a container asks in vain for "db"; the
 * diagnosis, its fix as printed, and the page in the browser until Ctrl-C. Everything is created here and removed at the end;
 * containers and services of the machine are not touched. With --once, or without a terminal, it ends before the page.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { startShop } from "./shop.mjs";
import { startEngine } from "../dist/test/support/engine/engine.js";
import { inNetns } from "../dist/test/support/rig/netns.js";
import { startUpstream } from "../dist/test/support/servers/upstream.js";

const showsPage = process.stdout.isTTY && !process.argv.includes("--once");
const hasColours = process.stdout.isTTY && process.env["NO_COLOR"] === undefined;
const bold = hasColours ? (/** @type {string} */ text) => `\x1b[1m${text}\x1b[0m` : String;
const BROKEN = "shop-api-1";

const work = mkdtempSync(join(tmpdir(), "d11-demo-"));
const engine = await startEngine();
const upstream = await startUpstream(engine);
const env = environment();
/** @type {import("node:child_process").ChildProcess | undefined} */
let daemon;
let isStopped = false;
// What is started here is removed then, too.
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => (isStopped = true));
try {
  say(`A private Docker ${engine.version}, with a small project:`);
  await startShop(engine);
  play('docker ps --format "{{.Names}}\\t{{.Networks}}"');

  say("dns11 runs beside it, and answers in each container from now on:");
  daemon = start();
  await untilTrue("it serves all containers", () => output("dns11 status").includes("5 of 5 served"));
  play("dns11 status");

  say("An api container cannot reach the database:");
  play(`docker exec ${BROKEN} ping -c 1 db`);
  const explained = play(`dns11 explain db --in ${BROKEN}`);
  const [, fix] = /^ *fix +(docker .*)$/m.exec(explained) ?? [];
  if (fix === undefined) throw new Error("the explanation has no fix");

  say("The fix, as it is printed there:");
  play(fix);
  play(`docker exec ${BROKEN} ping -c 1 db`);
  play("dns11 failures");

  say("kill -9: Docker's resolver answers again, and nothing of dns11 is left in the containers:");
  daemon.kill("SIGKILL");
  await once(daemon, "close");
  play(`docker exec ${BROKEN} ping -c 1 db`);

  if (showsPage) {
    daemon = start();
    await untilTrue("it serves all containers", () => output("dns11 status").includes("5 of 5 served"));
    say("To try the commands of docs/tour.md on this project, in another terminal as root:");
    console.log(`  . ${join(work, "environment")}`);
    say("The page, until Ctrl-C:");
    const page = spawn(join(work, "dns11"), ["ui", "--port", "0", "--no-open"], { env, stdio: "inherit" });
    await once(page, "close");
  }
} finally {
  if (daemon?.kill("SIGTERM") === true) await once(daemon, "close");
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  rmSync(work, { recursive: true, force: true });
}
say(
  "Everything is removed again. What is wrong with the containers of this machine:  sudo node dist/cmd/dns11.js doctor",
);

/** @param {string} text */
function say(text) {
  console.log(`\n${bold(text)}`);
}

/** Shows a command and its output. @param {string} command */
function play(command) {
  if (isStopped) throw new Error("stopped");
  const text = output(command);
  console.log(`  $ ${command}`);
  if (text.trim() !== "") console.log(text.trimEnd().replace(/^(?=.)/gm, "  "));
  return text;
}

/** @param {string} command */
function output(command) {
  const { stdout, stderr } = spawnSync("sh", ["-c", command], { encoding: "utf8", env });
  return stdout + stderr;
}

/** In the engine's network namespace, so that every setting has its default and the machine's port 9511 stays free. */
function start() {
  const [command = "", ...args] = inNetns(engine.netnsPath, join(work, "dns11"), ["run"]);
  return spawn(command, args, { env, stdio: ["ignore", "inherit", "ignore"] });
}

/** @param {string} what @param {() => boolean} isTrue */
async function untilTrue(what, isTrue) {
  for (let tries = 0; tries < 300; tries++) {
    if (isStopped) throw new Error("stopped");
    if (isTrue()) return;
    await sleep(100);
  }
  throw new Error(`waited in vain until ${what}`);
}

/** Commands as a reader types them; another terminal gets the same by a file. */
function environment() {
  const program = join(work, "dns11");
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${resolve("dist/cmd/dns11.js")}' "$@"\n`);
  chmodSync(program, 0o755);
  const variables = {
    PATH: `${work}:${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`,
    DOCKER_HOST: engine.host,
    DOCKER_CONFIG: join(engine.folder, "docker-client"),
    DNS11_STATE_DIR: join(work, "run"),
  };
  const lines = Object.entries(variables).map(([name, value]) => `export ${name}='${value}'\n`);
  writeFileSync(join(work, "environment"), lines.join(""));
  return { ...process.env, ...variables };
}
