/**
 * Container root: the files of a container as its own processes see them.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

import { O_PATH, closeQuietly, openInRoot } from "../../kernel/libc.ts";
import type { EngineHost } from "./engine-host.ts";
import { withPlainFile } from "./plain-file.ts";
import { isOfContainer } from "./proof.ts";

/** The container's own tree of files, as long as the process is the container's. */
export function withRoot<T>(
  pid: number,
  containerId: string,
  { sharesPids }: Pick<EngineHost, "sharesPids">,
  use: (root: number) => T,
): T {
  if (!sharesPids || pid <= 0) throw new Error("The container's process is not visible from here");
  const root = openSync(`/proc/${pid}/root`, O_PATH | constants.O_DIRECTORY);
  try {
    if (!isOfContainer(pid, containerId)) throw new Error("The process is not the container's any more");
    return use(root);
  } finally {
    closeQuietly(root);
  }
}

/** The first bytes of a file below a root; undefined where there is none, or none that is a file. */
export function readBelow(root: number, path: string, bytesMax: number): Buffer | undefined {
  try {
    return withPlainFile(
      (flags) => openInRoot(root, path, flags),
      (found) => beginningOf(found, bytesMax),
    );
  } catch {
    return undefined;
  }
}

function beginningOf(path: string, bytesMax: number): Buffer {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const bytes = Buffer.alloc(Math.min(bytesMax, fstatSync(fd).size));
    return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(fd);
  }
}
