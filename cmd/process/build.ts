/**
 * Build: the version of this dns11. The version number is in package.json; the build writes the commit to build.json.
 */
import { readFileSync } from "node:fs";

import { libcText } from "../modules/platform.ts";

export interface Build {
  readonly version: string;
  /** null if it was not built from a repository. */
  readonly commit: string | null;
  /** The date of that commit. */
  readonly day: string | null;
}

export function readBuild(): Build {
  const { version } = readJson("package.json") as { readonly version: string };
  try {
    const { commit, day } = readJson("dist/build.json") as Build;
    return { version, commit, day };
  } catch {
    return { version, commit: null, day: null };
  }
}

/** A file of the package: the program is bundled, so its own place tells nothing. */
function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, import.meta.resolve("dns11/package.json")), "utf8"));
}

interface VersionReport {
  readonly version: string;
  readonly commit: string | null;
  readonly node: string;
  readonly platform: string;
  readonly libc: string;
}

export function versionReport(): VersionReport {
  const { version, commit } = readBuild();
  const platform = `${process.platform}/${process.arch}`;
  return { version, commit, node: process.versions.node, platform, libc: libcText() };
}
