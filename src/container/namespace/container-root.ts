/**
 * Container root: the files of a container as its own processes see them.
 */
import { constants, openSync } from "node:fs";

import { O_PATH, closeQuietly, openInRoot } from "../../kernel/libc.ts";
import { readRegular } from "../../kernel/regular-file.ts";
import type { EngineHost } from "./engine-host.ts";
import { isOfContainer } from "./proof.ts";

/** The container's own tree of files, as long as the process is the container's. */
export function withContainerRoot<T>(
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
export function readUnder(root: number, path: string, bytesMax: number): Buffer | undefined {
  try {
    return readRegular((flags) => openInRoot(root, path, flags), bytesMax);
  } catch {
    return undefined;
  }
}
