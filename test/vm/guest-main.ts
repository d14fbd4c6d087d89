// What runs in a virtual machine: the demonstration, live tests with that release's engine, and the checks of the program that
// answers in the kernel, where that is loaded. Prints one line of JSON for each part. A file of the checkout says which tests.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { release } from "node:os";

import { listSockets } from "../../src/kernel/sock-diag.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { startEngine } from "../support/engine/engine.ts";
import { run } from "../support/program/command.ts";
import { type Dns11, startDns11, WITHOUT_KEEPER } from "../support/program/dns11.ts";
import { pause } from "../support/rig/wait.ts";
import { type ChosenTests, TESTS_FILE } from "./machines.ts";
import type { Outcome } from "./outcome.ts";

const KERNEL_QUERIES = "2000";
const KERNEL_PACKETS = "20000";
const PART_TIMEOUT_MS = 900_000;
/** Until a loop in the container looks at its rules. */
const LOOKING_MS = 500;

function print(outcome: Outcome): void {
  process.stdout.write(`${JSON.stringify(outcome)}\n`);
}

async function firstLine(command: string, ...args: string[]): Promise<string> {
  return (await run(command, args)).stdout.split("\n")[0]?.trim() ?? "";
}

/** From SIGKILL until the kernel has removed the rules, to the time that one look at them takes. */
async function removalOf(instance: Dns11, web: Container): Promise<number> {
  const gone = web.enter("sh", ["-c", "while nft list tables | grep -q dns11; do :; done"]);
  await pause(LOOKING_MS);
  const killedMs = performance.now();
  instance.kill("SIGKILL");
  assert.equal((await gone).code, 0);
  return Math.round(performance.now() - killedMs);
}

/** Whether a table with an owner can outlive it, which dns11 does not use. */
async function canPersist(web: Container): Promise<boolean> {
  await web.enter("nft", ["add", "table", "ip", "persisting", "{ flags owner, persist; }"]);
  return (await web.enter("nft", ["delete", "table", "ip", "persisting"])).code === 0;
}

/** Serves one container; says by what means, and how long its rules stay after SIGKILL. */
async function serveOne(): Promise<boolean> {
  await using engine = await startEngine({ suite: "bookworm" });
  await createNetwork(engine, "n1");
  const web = await runContainer(engine, { name: "web", networks: ["n1"] });
  await using instance = await startDns11(engine, { env: WITHOUT_KEEPER });
  await instance.waitFor("web", "attached");
  await instance.waitForKernel();
  const status = await instance.status();
  const answers = (await instance.container("web"))?.answers;
  const persists = await canPersist(web);
  const listsSockets = listSockets([{ protocol: "udp", family: 4, state: "unconnected", end: "local" }]) !== undefined;
  // Others stay.
  const removedMs = status.ruleBackend === "nft-owner" ? await removalOf(instance, web) : null;
  const by = answers?.by ?? "process";
  const reason = status.answers?.reason ?? null;
  print({ is: "served", rules: status.ruleBackend, answers: by, reason, removedMs, persists, listsSockets });
  return by === "kernel";
}

/** Runs a part, and counts its tests. */
async function part(
  name: string,
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<void> {
  const startedMs = performance.now();
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    // For whoever reads the log of a machine that failed.
    process.stderr.write(chunk);
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), PART_TIMEOUT_MS);
  const [code] = (await once(child, "close")) as [number | null];
  clearTimeout(timer);
  const results = [...text.matchAll(/^\s*(not )?ok \d+ - (.*)$/gm)].filter(([line]) => !/# SKIP/.test(line));
  const failed = results.filter(([, not]) => not !== undefined).map(([, , what]) => what ?? "");
  const passed = results.length - failed.length;
  if (code !== 0 && failed.length === 0) failed.push(`ended with ${code}`);
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  print({ is: "part", name, passed: passed === 0 && code === 0 ? 1 : passed, failed, seconds });
}

async function tests({ file, only }: ChosenTests, env: NodeJS.ProcessEnv = {}): Promise<void> {
  const pattern = only === undefined ? [] : ["--test-name-pattern", only];
  await part(file, process.execPath, ["--test-reporter=tap", "--test", ...pattern, `dist/test/${file}.test.js`], env);
}

print({
  is: "machine",
  kernel: release(),
  docker: (await firstLine("dockerd", "--version")).replace(/^Docker version ([^,]*),.*$/, "$1"),
  systemd: (await firstLine("systemctl", "--version")).replace(/^systemd (\d+).*$/, "$1"),
});
process.env["DNS11_TEST_ENGINE"] = "machine";
const isByKernel = await serveOne().catch((error: unknown) => {
  print({ is: "part", name: "serving one container", passed: 0, failed: [String(error)], seconds: 0 });
  return false;
});
await part("demonstration", process.execPath, ["scripts/demo.mjs"]);
for (const chosen of JSON.parse(readFileSync(TESTS_FILE, "utf8")) as ChosenTests[]) await tests(chosen);
if (isByKernel) {
  await tests({ file: "features/kernel-answers/same" }, { KERNEL_QUERIES });
  const fuzz = ["--expose-gc", "dist/test/fuzz/fuzz-main.js", "--kernel", "--inputs", KERNEL_PACKETS];
  await part("fuzz-kernel", process.execPath, fuzz);
}
print({ is: "end" });
