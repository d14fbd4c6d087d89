// @ts-check
/**
 * Writes the programs of the GitHub Action as one bundle, from src/action to .github/actions/dns11: a runner takes it from the repository as it
 * is there, by the small files beside it. With --check it writes nothing and fails if they are not up to date.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";

import { build } from "esbuild";

const FOLDER = ".github/actions/dns11";

const { outputFiles } = await build({
  entryPoints: ["src/action/main.ts"],
  outdir: FOLDER,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20",
  banner: { js: "// Written by scripts/action.mjs from src/action: change that, and run `make action`." },
  logLevel: "warning",
  write: false,
});
const changed = outputFiles.filter(({ path, text }) => textOf(path) !== text);
if (process.argv.includes("--check")) {
  for (const { path } of changed) console.error(`action: ${FOLDER}/${basename(path)} is not up to date: make action`);
  process.exit(changed.length === 0 ? 0 : 1);
}
for (const { path, text } of changed) {
  writeFileSync(path, text);
  console.log(`action: wrote ${FOLDER}/${basename(path)}`);
}

/** @param {string} path */
function textOf(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
