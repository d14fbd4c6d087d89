// @ts-check
/**
 * Runs the compiled tests: all but those of the rig, or the files whose path contains one of the given words. Each file is
 * a process, but unit tests share a few. More of them run at a time than there are cores, because most wait for an engine; the longest
 * start first. Prints progress, and at the end every failure in full and the totals as Node's runner prints them.
 */
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, statfsSync, writeFileSync } from "node:fs";
import { availableParallelism, freemem } from "node:os";
import { dirname, join } from "node:path";

import { COUNTS, MARK, noCounts } from "./test-reporter.mjs";

/** @typedef {import("./test-reporter.mjs").FileReport} FileReport */

const FOLDER = "dist/test";
const ENDING = ".test.js";
/** What the other tests stand on. It changes rarely, and is tested on demand. */
const OF_RIG = /(?:^|\/)rig[^/]*$/;
const TIMEOUT_MINUTES = 20;
/** A file keeps a core busy at most half of its time. With four for each core a whole run took longer. */
const AT_ONCE = 3 * availableParallelism();
const REPORTER = new URL("./test-reporter.mjs", import.meta.url).href;
/** Files of unit tests in a process: few enough that it ends in time on a machine that is ten times slower. */
const GROUP_FILES = 33;
const GROUP = new URL("./test-group.mjs", import.meta.url).pathname;
/** A process that outlives its test may hold the pipe; the test itself has printed everything by then. */
const PIPE_CLOSE_MS = 5_000;
/** Engines write images, layers and databases that are read once, or never: in memory that takes a tenth less time. */
const MEMORY_FOLDER = "/dev/shm";
const MEMORY_BYTES_MIN = 6 * 2 ** 30;
const TMPFS = 0x01021994;
/** How long each process took last time; only the order depends on it. */
const DURATIONS_FILE = ".cache/test-seconds.json";
/** Default duration of a file that has not run here yet: its own, or its folder's. */
const DEFAULT_SECONDS = new Map(
  Object.entries({
    chaos: 70,
    docker: 30,
    "docker/breakages/networks": 200,
    "docker/etcd": 120,
    "docker/etcd-publishing": 140,
    "docker/policy-boot": 150,
    fuzz: 10,
    hostile: 60,
    kernel: 4,
    "kernel/keeper": 40,
    "kernel/policy-table": 80,
    kind: 40,
    "kind/undo": 120,
    package: 40,
    "package/install": 140,
    page: 30,
    scale: 30,
    siege: 70,
    unit: 45,
    vm: 60,
  }),
);

const words = process.argv.slice(2);
const names = readdirSync(FOLDER, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(ENDING))
  .filter((file) => (words.length === 0 ? !OF_RIG.test(file) : words.some((word) => file.includes(word))))
  .map((file) => file.slice(0, -ENDING.length));
if (names.length === 0) {
  console.error(`test: no test file with "${words.join('" or "')}" in its path`);
  process.exit(2);
}

// `npx tsc` alone leaves the program as it was.
if (statSync("dist/.tsbuildinfo").mtimeMs > statSync("dist/cmd/dns11.js").mtimeMs) await import("./bundle.mjs");

/**
 * Node reads every certificate of this file at each start, which is most of the processor time of a small program, and only npm needs
 * them here.
 */
const { NODE_EXTRA_CA_CERTS: certificates, ...others } = process.env;
const environment = hasRoomInMemory() ? { TMPDIR: MEMORY_FOLDER, ...others } : others;

const startMs = performance.now();
const seconds = lastDurations();
/** Files of each process, by its name. */
const processes = new Map([
  ...groupsOf(names.filter((name) => name.startsWith("unit/"))),
  ...names
    .filter((name) => !name.startsWith("unit/"))
    .map((name) => /** @type {[string, string[]]} */ ([name, [name]])),
]);
const waiting = [...processes.keys()].toSorted((a, b) => expected(b) - expected(a) || a.localeCompare(b));
/** Start time of each running process. @type {Map<string, number>} */
const running = new Map();
/** @type {Set<import("node:child_process").ChildProcess>} */
const children = new Set();
const counts = noCounts();
const failures = [];
let done = 0;

// The test support processes remove what tests created when they see them exit.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    for (const child of children) child.kill("SIGKILL");
    process.exit(1);
  });
}

await Promise.all(Array.from({ length: AT_ONCE }, lane));
mkdirSync(dirname(DURATIONS_FILE), { recursive: true });
// That of another user can be replaced, but not written.
rmSync(DURATIONS_FILE, { force: true });
writeFileSync(DURATIONS_FILE, JSON.stringify(seconds));
if (failures.length > 0) console.log(`\n${failures.join("\n")}`);
for (const name of COUNTS) console.log(`ℹ ${name} ${counts[name]}`);
console.log(`ℹ duration_ms ${Math.round(performance.now() - startMs)}`);
process.exit(counts.fail + counts.cancelled === 0 ? 0 : 1);

async function lane() {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    const beganMs = performance.now();
    running.set(name, beganMs);
    const files = processes.get(name) ?? [];
    const report = await run(name, files);
    running.delete(name);
    seconds[name] = Math.round((performance.now() - beganMs) / 100) / 10;
    done += files.length;
    for (const each of COUNTS) counts[each] += report.counts[each];
    if (report.failures !== "") failures.push(`${name}:\n${report.failures}`);
    const wrong = report.counts.fail + report.counts.cancelled;
    const verdict = `${report.counts.tests} tests, ${wrong === 0 ? "" : `${wrong} FAILED, `}${seconds[name]} s`;
    console.log(`[${done} of ${names.length} files, ${timeLeft()}] ${name}: ${verdict}`);
  }
}

/** By path, because files beside each other load the same modules. @param {string[]} files @returns {[string, string[]][]} */
function groupsOf(files) {
  const sorted = files.toSorted();
  /** @type {[string, string[]][]} */
  const groups = [];
  for (let at = 0; at < sorted.length; at += GROUP_FILES) {
    const group = sorted.slice(at, at + GROUP_FILES);
    groups.push([[...new Set([group[0], group.at(-1)])].join(" to "), group]);
  }
  return groups;
}

/** @param {string} name @param {string[]} files @returns {Promise<FileReport>} */
async function run(name, files) {
  const flags = ["--enable-source-maps", `--test-reporter=${REPORTER}`, "--test-reporter-destination=stdout"];
  const paths = files.map((file) => join(FOLDER, file + ENDING));
  const child = spawn(process.execPath, [...flags, ...(paths.length > 1 ? [GROUP] : []), ...paths], {
    stdio: ["ignore", "pipe", "pipe"],
    env: name.startsWith("package/") ? { NODE_EXTRA_CA_CERTS: certificates, ...environment } : environment,
  });
  children.add(child);
  let text = "";
  for (const pipe of [child.stdout, child.stderr]) pipe.setEncoding("utf8").on("data", (chunk) => (text += chunk));
  const timer = setTimeout(() => child.kill("SIGKILL"), TIMEOUT_MINUTES * 60_000);
  const code = await new Promise((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("close", (status, signal) => resolve(status ?? signal));
    child.on("exit", (status, signal) => setTimeout(resolve, PIPE_CLOSE_MS, status ?? signal).unref());
  });
  clearTimeout(timer);
  children.delete(child);
  const at = text.lastIndexOf(MARK);
  const output = at < 0 ? text : text.slice(0, at);
  process.stdout.write(output);
  /** @type {FileReport} */
  const report =
    at < 0
      ? { counts: noCounts(), failures: output.slice(-10_000) }
      : JSON.parse(text.slice(at + MARK.length).split("\n", 1)[0] ?? "");
  if (code === 0 && at >= 0) return report;
  if (report.counts.fail + report.counts.cancelled > 0) return report;
  // As with Node's runner, a file that fails although none of its tests did counts as one more failed test.
  const { tests, fail } = report.counts;
  const late = code === "SIGKILL" ? `, perhaps because it did not end within ${TIMEOUT_MINUTES} minutes` : "";
  return {
    counts: { ...report.counts, tests: tests + 1, fail: fail + 1 },
    failures: `✖ ${name} ended with ${code}${late}\n${report.failures}`,
  };
}

function hasRoomInMemory() {
  try {
    const { type, bavail, bsize } = statfsSync(MEMORY_FOLDER);
    return type === TMPFS && Math.min(bavail * bsize, freemem()) >= MEMORY_BYTES_MIN;
  } catch {
    return false;
  }
}

/** @param {string} name */
function expected(name) {
  return seconds[name] ?? DEFAULT_SECONDS.get(name) ?? DEFAULT_SECONDS.get(name.split("/", 1)[0] ?? "") ?? 1;
}

/** Assumes that the rest is shared evenly; never less than the longest file needs. */
function timeLeft() {
  const nowMs = performance.now();
  const begun = [...running].map(([name, sinceMs]) => {
    const soFar = (nowMs - sinceMs) / 1000;
    return Math.max(expected(name) - soFar, soFar / 4);
  });
  const left = [...begun, ...waiting.map(expected)];
  if (left.length === 0) return `done in ${clock((nowMs - startMs) / 1000)}`;
  return `${clock(Math.max(...left, left.reduce((sum, each) => sum + each, 0) / AT_ONCE))} left`;
}

/** @param {number} total seconds */
function clock(total) {
  const whole = Math.round(total);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** @returns {Record<string, number>} */
function lastDurations() {
  try {
    return JSON.parse(readFileSync(DURATIONS_FILE, "utf8"));
  } catch {
    return {};
  }
}
