// @ts-check
/**
 * Captures: the output of commands in the documents, and the recording in README, from one real run beside a private engine, which
 * is started and removed here. Needs root, asciinema and termtosvg (make docs-captures installs them).
 * Usage: node scripts/docs-captures.mjs [--no-recording]
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { changedDocuments, formatted, must } from "./docs/regions.mjs";
import { startShop } from "./shop.mjs";
import { startEngine } from "../dist/test/support/engine/engine.js";
import { inNetns } from "../dist/test/support/rig/netns.js";
import { startUpstream } from "../dist/test/support/servers/upstream.js";

const PICTURE = "docs/img/demo.svg";
const [COLUMNS, ROWS] = [100, 30];
/** On its network alone, and asks for "db", which is on the other one: the project of the pictures of the page. */
const BROKEN = "shop-api-1";
const FIREWALL =
  "table ip firewall { chain out { type filter hook output priority -200; meta l4proto { tcp, udp } th dport 53 drop; }; }";

/** Played in the recording: what a reader would type, and between it what happens to the containers meanwhile. */
const SCENE = `
say() { printf '\\033[33m# %s\\033[0m\\n' "$*"; sleep 1; }
play() { printf '\\033[36m$\\033[0m \\033[1m%s\\033[0m\\n' "$*"; sleep 0.8; eval "$*" || true; sleep "\${pause:-2}"; echo; }
inside() { nsenter --target "$BROKEN_PID" --net "$@"; }
until_state() { until dns11 status --json | grep -q "\\"name\\":\\"${BROKEN}\\"[^}]*\\"state\\":\\"$1\\""; do sleep 0.1; done; }

say 'an api container cannot reach the database'
play docker exec ${BROKEN} ping -c 1 db
pause=4 play dns11 explain db ${BROKEN}
clear
say 'the second line names the cause, the third one the fix'
play docker network connect shop_back ${BROKEN}
play docker exec ${BROKEN} ping -c 1 db
sleep 1
clear
say 'something installs a firewall rule in the container'
inside nft "$FIREWALL"
until_state failed
play docker exec ${BROKEN} nslookup db
pause=6 play 'dns11 doctor ${BROKEN} | grep -i problem'
clear
say 'without that rule, dns11 takes over again by itself'
inside nft delete table ip firewall
until_state attached
play docker exec ${BROKEN} ping -c 1 db
pause=3 play dns11 tail ${BROKEN} -n 20
`;

const work = mkdtempSync(join(tmpdir(), "d11-captures-"));
const engine = await startEngine();
const upstream = await startUpstream(engine);
/** @type {import("node:child_process").ChildProcess | undefined} */
let daemon;
try {
  const { api: broken } = await startShop(engine);
  const env = environment();
  daemon = start(env);
  await untilState(env, BROKEN, "attached");
  const capture = (/** @type {string} */ command) => `\`\`\`text\n$ ${command}\n${output(command, env)}\n\`\`\``;

  for (const name of ["web", "www.ok.test", "www.ok.test", "db"]) await broken.exec("nslookup", [name]);
  /** @type {Record<string, string>} */
  const captured = {};
  captured["status"] = capture("dns11 status");
  captured["ps"] = capture("dns11 ps");
  captured["names"] = capture(`dns11 names --in ${BROKEN}`);
  captured["explain"] = capture(`dns11 explain db --in ${BROKEN}`);
  captured["tail"] = capture(`dns11 tail ${BROKEN} -n 20`);
  await broken.enter("nft", [FIREWALL]);
  await untilState(env, BROKEN, "failed");
  // The first problem and the count: README has the second one.
  captured["doctor"] = capture(`dns11 doctor ${BROKEN}`)
    .replace(/\nNOTE[\s\S]*?\n\n(?=PROBLEM)/, "\n...\n\n")
    .replace(/(PROBLEM[\s\S]*?)\n\n[\s\S]*\n\n/, "$1\n\n...\n\n");
  await broken.enter("nft", ["delete", "table", "ip", "firewall"]);
  await untilState(env, BROKEN, "attached");

  if (!process.argv.includes("--no-recording")) record({ ...env, FIREWALL, BROKEN_PID: String(broken.pid) });
  for (const [path, text] of changedDocuments("captured", captured, formatted)) {
    writeFileSync(path, text);
    console.log(`docs: ${path} written`);
  }
} finally {
  if (daemon?.kill("SIGTERM") === true) await once(daemon, "close");
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  rmSync(work, { recursive: true, force: true });
}

/** In the engine's network namespace, so that every setting has its default and the machine's port 9511 stays free. @param {NodeJS.ProcessEnv} env */
function start(env) {
  const [command = "", ...args] = inNetns(engine.netnsPath, join(work, "dns11"), ["run"]);
  return spawn(command, args, { env, stdio: ["ignore", "inherit", "ignore"] });
}

/** @param {NodeJS.ProcessEnv} env @param {string} name @param {string} state */
async function untilState(env, name, state) {
  for (let tries = 0; tries < 300; tries++) {
    const { stdout } = spawnSync(join(work, "dns11"), ["status", "--json"], { encoding: "utf8", env });
    /** @type {{ containers: { name: string, state: string }[] }} */
    const { containers } = JSON.parse(stdout || '{"containers":[]}');
    if (containers.some((each) => each.name === name && each.state === state)) return;
    await sleep(100);
  }
  throw new Error(`"${name}" did not become ${state}`);
}

/** Commands as a reader types them. */
function environment() {
  const program = join(work, "dns11");
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${resolve("dist/cmd/dns11.js")}' "$@"\n`);
  chmodSync(program, 0o755);
  return {
    ...process.env,
    PATH: `${work}:${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`,
    TERM: "xterm-256color",
    DOCKER_HOST: engine.host,
    DOCKER_CONFIG: join(engine.folder, "docker-client"),
    DNS11_STATE_DIR: join(work, "run"),
  };
}

/** What a command prints on a terminal without colours. @param {string} command @param {NodeJS.ProcessEnv} env */
function output(command, env) {
  const { stdout } = spawnSync("script", ["-qec", `stty cols ${COLUMNS} rows ${ROWS}; ${command}`, "/dev/null"], {
    encoding: "utf8",
    env: { ...env, NO_COLOR: "1" },
  });
  return familiar(stdout.replaceAll("\r", "")).trimEnd();
}

/** With the usual paths instead of those of this run. @param {string} text */
function familiar(text) {
  return text.replaceAll(engine.socketPath, "/run/docker.sock").replaceAll(join(work, "run"), "/run/dns11");
}

/** @param {NodeJS.ProcessEnv} env */
function record(env) {
  const [scene, cast] = [join(work, "scene.sh"), join(work, "scene.cast")];
  writeFileSync(scene, SCENE);
  const size = ["--cols", String(COLUMNS), "--rows", String(ROWS)];
  const { status } = spawnSync(
    "asciinema",
    ["rec", "-q", "--overwrite", "-i", "4", ...size, "-c", `bash ${scene}`, cast],
    {
      env,
      stdio: ["ignore", "ignore", "inherit"],
    },
  );
  if (status !== 0) throw new Error("asciinema did not record; is it installed?");
  must("termtosvg", ["render", cast, PICTURE, "-t", "window_frame", "-D", "4000", "-m", "400", "-M", "6000"]);
  console.log(`docs: ${PICTURE} written`);
}
