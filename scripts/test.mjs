// @ts-check
/**
 * Runs the compiled tests: those for each change; with --all the rest, too; with --until SECONDS (since 1970) as many files of the rest
 * as end by then, in a turn that the commit decides; or the files whose path contains one of the given words. Each file is a process, but
 * those that start no program share a few. More of them run at a time than there are cores, because most wait for an engine; the longest start first.
 * Prints progress, and at the end every failure in full and the totals as Node's runner prints them; with --table before them what each
 * file has cost.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, statfsSync, writeFileSync } from "node:fs";
import { availableParallelism, freemem } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";

import { COUNTS, MARK, noCounts } from "./test-reporter.mjs";

/** @typedef {import("./test-reporter.mjs").FileReport} FileReport */

const FOLDER = "dist/test";
const ENDING = ".test.js";
/**
 * The rest, which is not for each change: what is long, and fails only where something of its own has changed, or a shorter test does,
 * too. Paths begin so, or are of the rig, on which the other tests stand.
 */
const REST = [
  // Random faults, attacks and other kernels, each for a minute or more.
  "chaos/",
  // Downloads source packages.
  "corpora/",
  "scale/",
  "siege/",
  "vm/",
  // Installed, upgraded and removed as package, image and release.
  "package/",
  // Each breakage of the table with its fix, and each fault in a namespace; docker/breakages/failing-names and docker/doctor are for each change.
  "docker/breakages/clients",
  "docker/breakages/containers",
  "docker/breakages/names",
  "docker/breakages/networks",
  "docker/breakages/reports",
  "docker/breakages/servers",
  "docker/doctor-namespace",
  // The same on other engines, other Nodes, two machines, rootless, with other programs that use the engine.
  "docker/newer-node",
  "docker/rootless",
  "docker/testcontainers",
  "docker/upstream-matrix",
  "docker/docker-broken",
  "docker/engine-settings",
  "docker/old-musl",
  "features/default-bridge/newest",
  "features/swarm/cluster",
  "features/kind/families",
  "features/kind/kind-program",
  // Releases of systemd, etcd and gVisor, a boot of the machine, the builders of images, packages of Debian.
  "features/default-bridge/older",
  "features/listener/builds",
  "features/listener/gvisor",
  "features/policy/policy-boot",
  "features/etcd/publishing",
  "features/host-names/host-resolved",
  "features/host-names/host-resolvers",
  "features/mdns/resolved",
  "docker/firewall-page",
  "docker/recipes",
  // Everything compiled again: without each feature, and with the one of docs/internals.
  "features/removal",
  "features/writing",
  // Attacks on one dns11, and images with hundreds of megabytes of labels; fuzzing is for each change.
  "hostile/hostile",
  "docker/hostile-files",
  "docker/image-labels",
  "features/lab/hostile",
  "features/lan/hostile",
  "features/listener/hostile",
  // Policies that change under load, end, are learned or held by a client; policy, and those of addresses, are for each change.
  "features/policy/leases/policy-leases",
  "features/policy/policy-changes",
  "features/policy/policy-death",
  "features/policy/policy-host",
  "features/policy/policy-learn",
  "features/policy/policy-marks",
  "features/policy/policy-moments",
  "features/policy/policy-outgoing",
  "features/policy/policy-unknown",
  "features/policy/sandbox/sandbox",
  // Each way to answer a node's pods, and what ends it; answers and life are for each change.
  "features/kind/addresses",
  "features/kind/guards",
  "features/kind/hand-back",
  "features/kind/interception",
  "features/kind/localnet",
  "features/kind/node-route",
  "features/kind/replacement",
  "features/kind/resolv-conf",
  "features/kind/rule-backends",
  "features/kind/selection",
  "features/kind/updates",
  // Of one setting, command or program each, which shorter tests know, too.
  "docker/action",
  "docker/bad-input",
  "docker/bundle",
  "docker/descriptors",
  "features/dnsmasq/folder",
  "features/kube-dns/folder",
  "docker/health-probes",
  "docker/host-resolv-conf",
  "docker/kept-apart",
  "docker/locked",
  "docker/own-files",
  "docker/own-queries",
  "docker/plugin",
  "docker/prometheus",
  "docker/real-upstreams",
  "docker/rule-backends",
  "docker/run-with",
  "docker/sd-notify",
  "docker/upstream-container",
  "features/lab/commands",
  "features/lab/compose",
  "features/lab/docker-in-docker",
  "features/lab/languages",
  "features/lab/testing-page",
  "page/accessibility",
  "page/breakages",
  "page/explanations",
  "page/long-names",
  "page/open-browser",
  // What is left in a node after each end, and a whole run in a node.
  "features/kind/doctor",
  "features/kind/in-node",
  "features/kind/undo",
  "features/records/in-node",
];
const OF_RIG = /(?:^|\/)rig[^/]*$/;
const TIMEOUT_MINUTES = 40;
const REPORTER = new URL("./test-reporter.mjs", import.meta.url).href;
/**
 * Files that start no program, in a process, at least: each process loads most of the program, which is as much work as these files are.
 */
const GROUP_FILES = 20;
/** What such a file imports none of, nor does what it imports. */
const STARTERS = /\/support\/(?:client|engine|kind|program|servers|rig\/netns)/;
const IMPORTED = /^(?:import|export)\b(?:[^;"]*\bfrom)?\s*"(\.[^"]+\.js)"/gm;
/** How long one takes. */
const GROUPED_SECONDS = 0.5;
const GROUP = new URL("./test-group.mjs", import.meta.url).pathname;
/** A process that outlives its test may hold the pipe; the test itself has printed everything by then. */
const PIPE_CLOSE_MS = 5_000;
/** Engines write images, layers and databases that are read once, or never: in memory that takes a tenth less time. */
const MEMORY_FOLDER = "/dev/shm";
const MEMORY_BYTES_MIN = 6 * 2 ** 30;
const TMPFS = 0x01021994;
/** How much longer than expected a file of the rest may take, and still end in time. */
const MARGIN = 1.5;
/** How long each file took last time; the order depends on it, and which unit tests share a process. */
const DURATIONS_FILE = ".cache/test-seconds.json";
/** Default duration of a file that has not run here yet: its own, or its folder's. */
const DEFAULT_SECONDS = new Map(
  Object.entries({
    "chaos/chaos": 50,
    corpora: 20,
    docker: 30,
    features: 30,
    "features/default-bridge": 50,
    "features/etcd/etcd": 40,
    "features/etcd/mirror": 20,
    "features/etcd/publishing": 110,
    "features/host-names/host-names": 50,
    "features/host-names/host-resolved": 120,
    "features/host-names/host-resolvers": 100,
    "features/kind": 40,
    "features/kind/addresses": 60,
    "features/kind/doctor": 80,
    "features/kind/families": 50,
    "features/kind/guards": 50,
    "features/kind/in-node": 50,
    "features/kind/life": 60,
    "features/kind/rig-a": 70,
    "features/kind/undo": 90,
    "features/kind/updates": 60,
    "features/kind/advertised-addresses": 1,
    "features/kind/node-mode": 4,
    "features/kind/node-selection": 1,
    "features/kind/node-warnings": 1,
    "features/kind/pod-namespace": 25,
    "features/kind/port-conflicts": 4,
    "features/kind/settings": 1,
    "features/kubernetes/kubernetes": 60,
    "features/removal": 200,
    "features/writing": 40,
    "docker/breakages/clients": 90,
    "docker/breakages/failing-names": 80,
    "docker/breakages/containers": 120,
    "docker/breakages/names": 90,
    "docker/breakages/servers": 70,
    "docker/breakages/networks": 180,
    "docker/breakages/reports": 60,
    "docker/cache": 60,
    "docker/compose": 60,
    "docker/differential": 90,
    "docker/doctor": 60,
    "docker/doctor-configuration": 50,
    "docker/doctor-namespace": 70,
    "features/policy/leases/policy-leases": 60,
    "features/policy/sandbox/sandbox": 110,
    "docker/bad-input": 70,
    "features/lab/hostile": 40,
    "features/lab/lab": 60,
    "features/policy/policy": 50,
    "features/policy/policy-addresses": 60,
    "features/search/search": 60,
    "features/kernel-answers/kernel-answers": 60,
    "features/egress/egress": 50,
    "docker/explain": 60,
    "docker/failover": 60,
    "docker/firewall-page": 110,
    "docker/hostile-files": 60,
    "docker/image-labels": 60,
    "features/lan/lan": 40,
    "features/lan/taken": 40,
    "features/listener/listener": 80,
    "docker/handover": 70,
    "docker/killed": 50,
    "docker/metrics": 70,
    "features/policy/policy-boot": 120,
    "features/policy/policy-changes": 100,
    "features/policy/policy-death": 80,
    "docker/queries": 50,
    "docker/replacement": 60,
    "docker/rootless": 70,
    "docker/servers-and-cache": 50,
    "docker/settings": 60,
    "docker/tls-servers": 60,
    forwarder: 50,
    fuzz: 20,
    "hostile/hostile": 130,
    kernel: 4,
    "kernel/attachment": 20,
    "kernel/keeper": 60,
    "kernel/large-namespace": 25,
    "kernel/locked-namespace": 20,
    "kernel/nfnetlink": 20,
    "features/policy/policy-frames": 40,
    "features/policy/policy-table": 40,
    package: 40,
    "package/install": 110,
    "package/npm": 50,
    "package/ten-minutes": 80,
    page: 20,
    "page/breakages": 50,
    "page/live": 50,
    scale: 30,
    "siege/docker-20": 70,
    "siege/docker-28": 70,
    "siege/sandbox": 60,
    unit: 0.3,
    "unit/cmd/check-config": 2,
    "unit/cmd/completion": 8,
    "unit/cmd/help": 1.5,
    "unit/cmd/manual": 1.5,
    "unit/config/file/settings-file": 2,
    "unit/config/records/records": 2,
    "unit/container/files/resolv-conf-writer": 2.5,
    "unit/query/forward/fallbacks": 5,
    "unit/run/lifecycle": 6,
    "unit/query/upstream/tls": 4,
    "unit/run/records-reader": 2,
    "vm/verifiers": 280,
  }),
);

const { values: options, positionals: words } = parseArgs({
  allowPositionals: true,
  options: {
    table: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    until: { type: "string", default: "0" },
    "at-once": { type: "string", default: String(3 * availableParallelism()) },
  },
});
const untilMs = Number(options.until) * 1000;
/** A file keeps a core busy at most half of its time. With four for each core a whole run took longer. */
const atOnce = Number(options["at-once"]);
const found = readdirSync(FOLDER, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(ENDING))
  .map((file) => file.slice(0, -ENDING.length));
const isRest = (/** @type {string} */ name) => OF_RIG.test(name) || REST.some((start) => name.startsWith(start));
const names = found.filter((name) =>
  words.length > 0 ? words.some((word) => `${name}${ENDING}`.includes(word)) : options.all || !isRest(name),
);
/** What takes turns begins where the commit says: the same commit has the same turn, and others another. */
const turn = Number.parseInt(
  spawnSync("git", ["rev-parse", "HEAD"], { encoding: "utf8" }).stdout?.slice(0, 8) || "0",
  16,
);
/** Those of the rest that have not begun, in their turn. */
const rest = words.length > 0 || options.all ? [] : inTurn(found.filter(isRest).toSorted());
for (const start of REST) {
  const isFound = found.some((name) => name.startsWith(start));
  // One that is taken out has no folder.
  const isOfFeature = start.startsWith("features/") && !existsSync(dirname(`test/${start}`));
  if (!isFound && !isOfFeature) throw new Error(`no test begins with "${start}" of the rest`);
}
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
const environment = {
  ...(hasRoomInMemory() && { TMPDIR: MEMORY_FOLDER }),
  // One of the engines that a test is for: test/support/engine/suite.ts.
  ...(words.length === 0 && !options.all && { DNS11_TEST_TURN: String(turn) }),
  // Random cases of a property, as a multiple of those for each change: test/support/rig/runs.ts.
  ...(options.all && { DNS11_TEST_RUNS: "10" }),
  ...others,
};

const startMs = performance.now();
const seconds = lastDurations();
/** Whether a compiled file of tests starts programs, by its path. @type {Map<string, boolean>} */
const starters = new Map();
/** Files of each process, by its name. */
const processes = new Map([
  ...groupsOf(names.filter(isGrouped)),
  ...names.filter((name) => !isGrouped(name)).map((name) => /** @type {[string, string[]]} */ ([name, [name]])),
]);
const waiting = [...processes.keys()].toSorted((a, b) => expectedOf(b) - expectedOf(a) || a.localeCompare(b));
/** Start time of each running process. @type {Map<string, number>} */
const running = new Map();
/** @type {Set<import("node:child_process").ChildProcess>} */
const children = new Set();
const counts = noCounts();
const failures = [];
/** What each file has cost, by its name. @type {import("./test-reporter.mjs").FileCosts} */
const costs = {};
let done = 0;
let ofAll = names.length;
/** @type {string[]} */
const ofRest = [];

// The test support processes remove what tests created when they see them exit.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    for (const child of children) child.kill("SIGKILL");
    process.exit(1);
  });
}

await Promise.all(Array.from({ length: atOnce }, lane));
mkdirSync(dirname(DURATIONS_FILE), { recursive: true });
// That of another user can be replaced, but not written.
rmSync(DURATIONS_FILE, { force: true });
writeFileSync(DURATIONS_FILE, JSON.stringify(seconds));
if (options.table) printTable();
if (untilMs > 0) {
  console.log(`\nof the rest, run: ${ofRest.join(", ") || "none"}`);
  console.log(`of the rest, not run this time (make test-all has all): ${rest.join(", ") || "none"}`);
}
if (failures.length > 0) console.log(`\n${failures.join("\n")}`);
for (const name of COUNTS) console.log(`ℹ ${name} ${counts[name]}`);
console.log(`ℹ duration_ms ${Math.round(performance.now() - startMs)}`);
process.exit(counts.fail + counts.cancelled === 0 ? 0 : 1);

async function lane() {
  for (let name = next(); name !== undefined; name = next()) {
    const beganMs = performance.now();
    running.set(name, beganMs);
    const files = processes.get(name) ?? [name];
    const report = await run(name, files);
    running.delete(name);
    const took = rounded((performance.now() - beganMs) / 1000);
    if (report.costs !== undefined && report.files === undefined) costs[name] = { ...report.costs, wall: took };
    for (const [path, each] of Object.entries(report.files ?? {})) costs[nameOf(path)] = each;
    for (const file of files) seconds[file] = files.length === 1 ? took : rounded(costs[file]?.wall ?? expected(file));
    done += files.length;
    for (const each of COUNTS) counts[each] += report.counts[each];
    if (report.failures !== "") failures.push(`${name}:\n${report.failures}`);
    const wrong = report.counts.fail + report.counts.cancelled;
    const cost =
      options.table && report.costs ? `, ${tenths(report.costs.own + report.costs.programs)} s of a processor` : "";
    const verdict = `${report.counts.tests} tests, ${wrong === 0 ? "" : `${wrong} FAILED, `}${took} s${cost}`;
    console.log(`[${done} of ${ofAll} files, ${timeLeft()}] ${name}: ${verdict}`);
  }
}

/** The next process to run: of the rest the first in turn that is expected to end in time. */
function next() {
  const first = waiting.shift();
  if (first !== undefined) return first;
  const at = rest.findIndex((name) => Date.now() + expected(name) * MARGIN * 1000 < untilMs);
  if (at < 0) return undefined;
  const [name = ""] = rest.splice(at, 1);
  ofRest.push(name);
  ofAll++;
  return name;
}

/** @param {string[]} sorted */
function inTurn(sorted) {
  const start = turn % sorted.length;
  return [...sorted.slice(start), ...sorted.slice(0, start)];
}

/**
 * By path, because files beside each other load the same modules; each group is expected to take as long as the others, since the last
 * one to end bounds the run. @param {string[]} files @returns {[string, string[]][]}
 */
function groupsOf(files) {
  const count = Math.max(1, Math.min(atOnce, Math.ceil(files.length / GROUP_FILES)));
  const share = secondsOf(files) / count;
  /** @type {string[][]} */
  const groups = [];
  let begun = 0;
  for (const file of files.toSorted()) {
    // Where its middle is.
    const at = Math.min(count - 1, Math.floor((begun + expected(file) / 2) / share));
    (groups[at] ??= []).push(file);
    begun += expected(file);
  }
  return groups.filter(Boolean).map((group) => [[...new Set([group[0], group.at(-1)])].join(" to "), group]);
}

/** @param {readonly string[]} files */
function secondsOf(files) {
  return files.reduce((sum, file) => sum + expected(file), 0);
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

/** The longest first. Daemons that outlive who started them, such as containerd's shims, are in no file's time. */
function printTable() {
  const rows = Object.entries(costs).map(([name, { wall, own, programs, started }]) => ({
    name,
    wall,
    own,
    programs,
    started: Object.entries(started)
      .toSorted(([one], [other]) => one.localeCompare(other))
      .map(([what, count]) => `${count} ${what}`)
      .join(", "),
  }));
  console.log(
    "\n| file | s | of a processor: the test | what it starts | neither | started |\n| --- | --: | --: | --: | --: | --- |",
  );
  for (const { name, wall, own, programs, started } of rows.toSorted((a, b) => b.wall - a.wall))
    console.log(
      `| ${name} | ${tenths(wall)} | ${tenths(own)} | ${tenths(programs)} | ${tenths(Math.max(0, wall - own - programs))} | ${started} |`,
    );
  const sum = (/** @type {(row: (typeof rows)[number]) => number} */ of) =>
    tenths(rows.reduce((all, row) => all + of(row), 0));
  console.log(
    `| all | ${sum(({ wall }) => wall)} | ${sum(({ own }) => own)} | ${sum(({ programs }) => programs)} | | |\n`,
  );
}

function tenths(/** @type {number} */ value) {
  return value.toFixed(1);
}

/** @param {number} value */
function rounded(value) {
  return Math.ceil(value * 10) / 10;
}

/** @param {string} path */
function nameOf(path) {
  return path.slice(FOLDER.length + 1, -ENDING.length);
}

/** Of a process. @param {string} name */
function expectedOf(name) {
  return secondsOf(processes.get(name) ?? [name]);
}

/** @param {string} name */
function isGrouped(name) {
  return name.startsWith("unit/") || (name.startsWith("features/") && !startsPrograms(join(FOLDER, name + ENDING)));
}

/** @param {string} path @returns {boolean} */
function startsPrograms(path) {
  const known = starters.get(path);
  if (known !== undefined) return known;
  // Files may import each other.
  starters.set(path, false);
  const imports = [...readFileSync(path, "utf8").matchAll(IMPORTED)]
    .map(([, to = ""]) => join(dirname(path), to))
    .filter((each) => each.startsWith(`${FOLDER}/`));
  const starts = imports.some((each) => STARTERS.test(each) || startsPrograms(each));
  starters.set(path, starts);
  return starts;
}

/** Of a file: what is known of it, or else of the folders that it is in, the innermost first. @param {string} name */
function expected(name) {
  if (seconds[name] !== undefined) return seconds[name];
  const own = DEFAULT_SECONDS.get(name);
  if (own === undefined && isGrouped(name)) return GROUPED_SECONDS;
  for (let path = name; path !== "."; path = dirname(path)) {
    const known = DEFAULT_SECONDS.get(path);
    if (known !== undefined) return known;
  }
  return 1;
}

/** Assumes that the rest is shared evenly; never less than the longest file needs. */
function timeLeft() {
  const nowMs = performance.now();
  const begun = [...running].map(([name, sinceMs]) => {
    const soFar = (nowMs - sinceMs) / 1000;
    return Math.max(expectedOf(name) - soFar, soFar / 4);
  });
  const left = [...begun, ...waiting.map(expectedOf)];
  if (left.length === 0) return `done in ${clock((nowMs - startMs) / 1000)}`;
  return `${clock(Math.max(...left, left.reduce((sum, each) => sum + each, 0) / atOnce))} left`;
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
