/** Owns reading a file that may be gone by now, as those of processes are, or never have been there. */
import { readFileSync } from "node:fs";

/** Empty where there is nothing to read. */
export function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
