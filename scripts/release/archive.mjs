// @ts-check
/**
 * Archives that are the same whenever and wherever they are made: sorted, owned by root, with one time for all files. The
 * compression is gzip's, because that of Node changes with its version of zlib.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** Runs a command that must succeed. @param {string} command @param {readonly string[]} args @param {import("node:child_process").SpawnSyncOptions} [options] */
export function must(command, args, options = {}) {
  const { status, error, stderr } = spawnSync(command, args, { stdio: ["ignore", "ignore", "pipe"], ...options });
  if (status === 0) return;
  throw new Error(`${command} ${args.join(" ")} failed: ${error?.message ?? String(stderr ?? "").trim()}`);
}

/**
 * Writes a tar archive of paths below a folder; compressed if its name ends with .gz. @param {string} archive
 * @param {string} folder @param {readonly string[]} paths @param {number} epoch @param {number} [level] of compression
 */
export function pack(archive, folder, paths, epoch, level = 6) {
  const flags = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu", `--mtime=@${epoch}`];
  const plain = archive.replace(/\.gz$/, "");
  must("tar", [...flags, "-cf", plain, "-C", folder, ...paths], { env: { ...process.env, LC_ALL: "C" } });
  if (plain !== archive) must("gzip", [`-${level}`, "--no-name", "--force", plain]);
}

/** @param {string} file */
export function sha256(file) {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}
