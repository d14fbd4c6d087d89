// @ts-check
/**
 * Writes dist/build.json: the commit that was built, and its date, where known. `dns11 version` prints it, also from a
 * package without git metadata.
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";

/** @param {string[]} args */
function git(...args) {
  const { status, stdout } = spawnSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  return status === 0 ? stdout.trim() : undefined;
}

const hash = git("rev-parse", "--short=12", "HEAD");
const isChanged = git("status", "--porcelain", "--untracked-files=no") !== "";
// Reproducible builds set the date with this.
const epoch = process.env["SOURCE_DATE_EPOCH"];
const day =
  epoch === undefined
    ? (git("log", "-1", "--format=%cs") ?? null)
    : new Date(Number(epoch) * 1000).toISOString().slice(0, 10);
const commit = hash === undefined ? null : `${hash}${isChanged ? "-changed" : ""}`;
writeFileSync("dist/build.json", `${JSON.stringify({ commit, day })}\n`);
