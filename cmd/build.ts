/**
 * Build: the version of this dns11. The version number is in package.json; the build writes the commit to build.json.
 */
import { readFileSync } from "node:fs";

export interface Build {
  readonly version: string;
  /** null if it was not built from a repository. */
  readonly commit: string | null;
  /** The date of that commit. */
  readonly day: string | null;
}

export function readBuild(): Build {
  const { version } = readJson("../../package.json") as { readonly version: string };
  try {
    const { commit, day } = readJson("../build.json") as Build;
    return { version, commit, day };
  } catch {
    return { version, commit: null, day: null };
  }
}

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
}
