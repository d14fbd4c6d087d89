/**
 * LockedPackages: packages that only a test needs, from a lock file of their own, downloaded once into a folder of the cache.
 */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

import { run } from "./command.ts";

/** A registry may stall: what has not come by then is asked for again. */
const AGAIN = ["--fetch-timeout=60000", "--fetch-retries=5"];
const DOWNLOAD_MS = 300_000;

interface PackageFile {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/**
 * The folder with node_modules. `nameOf` names it after a version of the lock; `prepare` completes it after a download; `flags` are
 * more flags of npm.
 */
export async function lockedPackages(
  lock: string,
  nameOf: (packages: Readonly<Record<string, string>>) => string,
  prepare: (folder: string) => void = () => undefined,
  flags: readonly string[] = [],
): Promise<string> {
  const file = JSON.parse(readFileSync(join(lock, "package.json"), "utf8")) as PackageFile;
  const folder = resolve(".cache", nameOf({ ...file.dependencies, ...file.optionalDependencies }));
  if (existsSync(folder)) return folder;
  const part = `${folder}.${process.pid}`;
  mkdirSync(part, { recursive: true });
  for (const name of ["package.json", "package-lock.json"]) copyFileSync(join(lock, name), join(part, name));
  const words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", ...AGAIN, ...flags];
  const { code, stderr } = await run("npm", words, { cwd: part, timeoutMs: DOWNLOAD_MS });
  assert.equal(code, 0, stderr);
  prepare(part);
  rmSync(folder, { recursive: true, force: true });
  renameSync(part, folder);
  return folder;
}
