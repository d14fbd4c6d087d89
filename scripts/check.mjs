// @ts-check
/** Checks that need no root: types, lint, format, dead code, generated programs, layering. Runs all of them, and fails if any failed. */
import { spawnSync } from "node:child_process";

/** @type {[string, string, string[]][]} */
const PARTS = [
  ["types", "npx", ["tsc"]],
  ["types of the page", "npx", ["tsc", "-p", "src/ui/page"]],
  ["lint", "npx", ["oxlint", "--type-aware", "--deny-warnings", "cmd", "src", "test", "scripts"]],
  ["format", "npx", ["oxfmt", "--check", "."]],
  ["dead code", "npx", ["knip"]],
  ["eBPF program", process.execPath, ["scripts/kernel-program.mjs", "--check"]],
  ["GitHub Action", process.execPath, ["scripts/action.mjs", "--check"]],
  ["layering", process.execPath, ["--test", "dist/test/tidy.test.js"]],
];

const failed = [];
for (const [name, command, args] of PARTS) {
  console.log(`== ${name}`);
  const { status } = spawnSync(command, args, { stdio: "inherit" });
  if (status !== 0) failed.push(name);
}
console.log(failed.length === 0 ? "check: all parts pass" : `check: failed in ${failed.join(", ")}`);
process.exit(failed.length === 0 ? 0 : 1);
