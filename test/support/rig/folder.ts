/**
 * Temporary folder of a test. It is removed with the process that made it, however that ends: a hook that would remove it does
 * not run if an earlier one fails.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

import { hold, release } from "./reaper.ts";

const made: string[] = [];

/** `what` is a word of its name. */
export function makeFolder(what: string): string {
  const folder = mkdtempSync(join(tmpdir(), `d11-${what}-`));
  if (made.push(folder) === 1) process.once("exit", removeAll);
  hold({ id: basename(folder), folder });
  return folder;
}

function removeAll(): void {
  for (const folder of made) {
    try {
      rmSync(folder, { recursive: true, force: true });
      release({ id: basename(folder) });
    } catch {
      // A program still writes there; the reaper removes it.
    }
  }
}
