/**
 * Container root: the files of a container as its own processes see them.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

import { closeQuietly, openInRoot } from "../../kernel/libc.ts";
import type { EngineHost } from "./engine-host.ts";
import { isOfContainer } from "./proof.ts";

const O_PATH = 0o10000000;

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
  let place = -1;
  let fd = -1;
  try {
    // A container decides what stands there: to open a pipe would be to wait, to open a device may do anything.
    place = openInRoot(root, path, O_PATH);
    if (!fstatSync(place).isFile()) return undefined;
    fd = openSync(`/proc/self/fd/${place}`, constants.O_RDONLY | constants.O_NONBLOCK);
    const bytes = Buffer.alloc(Math.min(bytesMax, fstatSync(fd).size));
    return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0));
  } catch {
    return undefined;
  } finally {
    for (const each of [fd, place]) if (each >= 0) closeSync(each);
  }
}
