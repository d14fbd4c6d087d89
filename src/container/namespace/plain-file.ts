/**
 * Plain file: what stands in a place that a container decides about, used only if it is a file. It is looked at before it is
 * opened: to open a pipe would be to wait, to open a device may do anything.
 */
import { closeSync, fstatSync } from "node:fs";

import { O_PATH } from "../../kernel/libc.ts";

/** `open` finds the place, with the flags of open(2); `use` gets a path that leads to that very file as long as it runs. */
export function withPlainFile<T>(open: (flags: number) => number, use: (path: string) => T): T {
  const fd = open(O_PATH);
  try {
    if (!fstatSync(fd).isFile()) throw new Error("It is not a regular file");
    return use(`/proc/self/fd/${fd}`);
  } finally {
    closeSync(fd);
  }
}
