/**
 * Build: which dns11 this is. The version stands in package.json; the build leaves beside the program which commit it was.
 */
import { readFileSync } from "node:fs";

export interface Build {
  readonly version: string;
  /** null where it was not built from a repository. */
  readonly commit: string | null;
  /** The day of that commit. */
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
