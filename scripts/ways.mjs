// @ts-check
/**
 * Prints which files of src have code that runs for a query, a container, a setting and others, in a dns11 beside a private engine. What
 * runs when nothing happens is left out.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const { DNS11_IMAGE: image, DNS11_ENGINE_NETNS: netns } = process.env;
if (image === undefined || netns === undefined) {
  const [node, script] = [process.execPath, process.argv[1] ?? ""];
  const child = spawn(node, ["scripts/with-engine.mjs", node, script, ...process.argv.slice(2)], { stdio: "inherit" });
  const [code] = await once(child, "close");
  process.exit(code ?? 1);
}

const isVerbose = process.argv.includes("--files");
/** Longer than the longest period of what is done again and again. */
const QUIET_MS = 3_000;
/** What follows a step, such as a renewal of what the keeper holds. */
const SETTLE_MS = 1_000;
const PROGRAM = "dist/cmd/dns11.js";
const POLICY = { for: ["label=policed"], mode: "enforce", addresses: "enforce", allow: ["www.example.com"] };

/** With the offset of each line, by the path of the bundle. @type {Map<string, {starts: number[], map: SourceMap}>} */
const sourceMaps = new Map();
const folder = mkdtempSync(join(tmpdir(), "d11-ways-"));
const settings = join(folder, "dns11.json");
const state = join(folder, "run");
writeSettings({});
const counting = new URL("ways-counting.mjs", import.meta.url).pathname;
const dns11 = spawn(
  process.execPath,
  ["--import", counting, PROGRAM, "run", "--state-dir", state, "--config", settings],
  { env: { ...process.env, WAYS: folder }, stdio: ["ignore", "inherit", "pipe"] },
);
let log = "";
dns11.stderr.setEncoding("utf8").on("data", (text) => (log += text));
try {
  docker("network", "create", "ways");
  start("db");
  start("web");
  await until(() => log.includes("loaded the running containers"));
  await sleep(QUIET_MS);
  await take();
  await sleep(QUIET_MS);
  const idle = await take();
  /** @type {[string, () => unknown][]} */
  const ways = [
    ["a query for a container's name", () => ask("web", "db")],
    ["a query that is forwarded", () => ask("web", "www.example.com")],
    ["a container", () => start("late")],
    ["dns11 explain", () => command("explain", "web", "db")],
    ["a setting", () => (writeSettings({ policies: { held: POLICY } }), command("reload"))],
    ["a container with an enforced policy", () => start("policed", "--label", "policed")],
    ["what it may ask, and its addresses", () => ask("policed", "www.example.com")],
  ];
  for (const [title, go] of ways) {
    go();
    await sleep(SETTLE_MS);
    const files = filesOf(await take(), idle);
    const own = files.filter((file) => file.startsWith("src/features/"));
    console.log(`${title.padEnd(40)} ${String(files.length).padStart(4)} files, ${own.length} of them of features`);
    if (isVerbose) for (const file of files) console.log(`  ${file}`);
  }
} finally {
  dns11.kill("SIGTERM");
  await once(dns11, "close");
  rmSync(folder, { recursive: true });
}

/** @param {Record<string, unknown>} more */
function writeSettings(more) {
  writeFileSync(`${settings}.new`, JSON.stringify({ version: 1, ...more }));
  renameSync(`${settings}.new`, settings);
}

/** @param {string[]} args */
function docker(...args) {
  return execFileSync("docker", args, { encoding: "utf8" });
}

/** @param {string} name @param {string[]} options */
function start(name, ...options) {
  docker("run", "-d", "--name", name, "--network", "ways", ...options, image ?? "");
}

/** @param {string} container @param {string} name */
function ask(container, name) {
  execFileSync("sh", ["-c", `docker exec ${container} nslookup -type=a ${name} || true`], { stdio: "ignore" });
}

/** @param {string[]} args */
function command(...args) {
  execFileSync(process.execPath, [PROGRAM, ...args, "--state-dir", state], { stdio: "ignore" });
}

/** @param {() => boolean} condition */
async function until(condition) {
  for (let tries = 0; !condition(); tries++) {
    if (tries > 600 || dns11.exitCode !== null) throw new Error(`dns11 is not where it should be:\n${log}`);
    await sleep(50);
  }
}

/** The functions that were called since the last time: FILE and where each begins. @returns {Promise<Set<string>>} */
async function take() {
  const called = join(folder, "called");
  writeFileSync(join(folder, "take.new"), "called");
  renameSync(join(folder, "take.new"), join(folder, "take"));
  await until(() => existsSync(called));
  /** @type {{url: string, offsets: number[]}[]} */
  const scripts = JSON.parse(readFileSync(called, "utf8"));
  rmSync(called);
  return new Set(scripts.flatMap(({ url, offsets }) => offsets.map((offset) => `${new URL(url).pathname} ${offset}`)));
}

/** @param {Set<string>} functions @param {Set<string>} without */
function filesOf(functions, without) {
  const files = new Set(
    [...functions]
      .filter((each) => !without.has(each))
      .map((each) => sourceOf(...each.split(" ")))
      .filter((file) => file.startsWith("src/")),
  );
  return [...files].toSorted();
}

/** The source file of a place in a bundle. */
function sourceOf(path = "", offset = "0") {
  const { starts, map } = sourceMapOf(path);
  const after = starts.findIndex((each) => each > Number(offset));
  const line = (after < 0 ? starts.length : after) - 1;
  const entry = map.findEntry(line, Number(offset) - (starts[line] ?? 0));
  // Of the bundle as a whole there is no source.
  if (offset === "0" || !("originalSource" in entry)) return "";
  return entry.originalSource.includes("node_modules") ? "" : entry.originalSource.replace(/^.*?\/(?=(src|cmd)\/)/, "");
}

/** @param {string} path */
function sourceMapOf(path) {
  const known = sourceMaps.get(path);
  if (known !== undefined) return known;
  let at = 0;
  const starts = readFileSync(path, "utf8")
    .split("\n")
    .map((line) => {
      at += line.length + 1;
      return at - line.length - 1;
    });
  const read = { starts, map: new SourceMap(JSON.parse(readFileSync(`${path}.map`, "utf8"))) };
  sourceMaps.set(path, read);
  return read;
}
