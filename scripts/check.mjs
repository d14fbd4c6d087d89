// @ts-check
/**
 * Checks that need no root: types, lint, format, dead code, generated programs, layering. Runs all of them, as many at a time as there are
 * processors, prints each one's output when it has ended, and fails if any failed.
 */
import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";

/**
 * In this order. Scripts import what the types are compiled to, and so the lint of scripts reads it, too.
 * @type {[string, string, string[]][][]}
 */
const STAGES = [
  [
    ["types", "tsc", []],
    ["format", "oxfmt", ["--check", "."]],
  ],
  // The slowest begins first.
  [
    ["lint", "oxlint", ["--type-aware", "--deny-warnings", "cmd", "src", "test", "scripts"]],
    ["types of the page", "tsc", ["-p", "src/ui/page"]],
    ["dead code", "knip", []],
    ["eBPF program", process.execPath, ["scripts/kernel-program.mjs", "--check"]],
    ["GitHub Action", process.execPath, ["scripts/action.mjs", "--check"]],
    ["layering", process.execPath, ["--test", "dist/test/tidy.test.js"]],
  ],
];

/** @type {string[]} */
const failed = [];
for (const stage of STAGES) {
  const waiting = [...stage];
  await Promise.all(Array.from({ length: availableParallelism() }, async () => await lane(waiting)));
}
console.log(failed.length === 0 ? "check: all parts pass" : `check: failed in ${failed.join(", ")}`);
process.exit(failed.length === 0 ? 0 : 1);

/** @param {(typeof STAGES)[number]} waiting */
async function lane(waiting) {
  for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
    const [name, command, args] = part;
    const { code, output } = await run(command, args);
    console.log(`== ${name}`);
    process.stdout.write(output);
    if (code !== 0) failed.push(name);
  }
}

/** @param {string} command @param {string[]} args @returns {Promise<{ readonly code: unknown, readonly output: string }>} */
async function run(command, args) {
  // npm has node_modules/.bin in the PATH of its scripts.
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const pipe of [child.stdout, child.stderr]) pipe.setEncoding("utf8").on("data", (chunk) => (output += chunk));
  return await new Promise((resolve) => {
    child.on("error", (error) => resolve({ code: error.message, output: `${output}${error.message}\n` }));
    child.on("close", (code) => resolve({ code, output }));
  });
}
