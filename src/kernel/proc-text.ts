/**
 * procText: what one of the kernel's own files says, under /proc. A kernel that was built without something has no file
 * for it, which is an answer and no failure.
 */
import { readFileSync } from "node:fs";

import { codeOf } from "../lib/fault.ts";

export function procText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
