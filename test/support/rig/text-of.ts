/** Reader of files that may not exist, such as those of processes under /proc. */
import { readFileSync } from "node:fs";

/** Empty if it cannot be read. */
export function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
