// @ts-check
/**
 * Runs the tests on the compiled program: all, or those whose path contains one of the words given. Two files at a time:
 * most of them wait for an engine. Node's own summary is the last thing printed.
 */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

const FOLDER = "dist/test";
const TIMEOUT_MS = 10 * 60_000;
const AT_ONCE = 2;

const words = process.argv.slice(2);
const files = readdirSync(FOLDER, { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".test.js"))
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
  .map((file) => join(FOLDER, file))
  .toSorted();
if (files.length === 0) {
  console.error(`test: no test file has "${words.join('" or "')}" in its path`);
  process.exit(2);
}
const flags = ["--enable-source-maps", "--test", `--test-timeout=${TIMEOUT_MS}`, `--test-concurrency=${AT_ONCE}`];
const { status } = spawnSync(process.execPath, [...flags, "--test-reporter=spec", ...files], { stdio: "inherit" });
process.exit(status ?? 1);
