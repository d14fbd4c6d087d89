// @ts-check
/** Generates the manual pages and the example settings file with the program itself, in dist/man. */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";

const FOLDER = "dist/man";

mkdirSync(FOLDER, { recursive: true });
for (const page of ["dns11.8", "dns11.yaml.5", "dns11.yaml"]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["dist/cmd/dns11.js", "man", page], {
    encoding: "utf8",
  });
  if (status !== 0) {
    console.error(`man: ${page}: ${stderr}`);
    process.exit(1);
  }
  writeFileSync(`${FOLDER}/${page}`, stdout);
}
