/**
 * ContainerRoot: the file system of a container, as its own processes see it.
 */
import { constants, openSync } from "node:fs";

import { Fault } from "../../base/lib/fault.ts";
import { O_PATH, closeQuietly, openInRoot } from "../../kernel/libc.ts";
import { readRegular } from "../../kernel/regular-file.ts";
import type { EngineHost } from "./engine-host.ts";
import { isOfContainer } from "./proof.ts";

/** Calls `use` with the container's root folder, after checking that the process belongs to the container. */
export function withContainerRoot<T>(
  pid: number,
  containerId: string,
  { sharesPids }: Pick<EngineHost, "sharesPids">,
  use: (root: number) => T,
): T {
  if (!sharesPids || pid <= 0) {
    throw new Fault("ENGINE_ELSEWHERE", "Cannot see the container's process: it runs in another PID namespace", {
      remedy: "Run dns11 on the engine's machine or in a container with `--pid host`.",
    });
  }
  const root = openSync(`/proc/${pid}/root`, O_PATH | constants.O_DIRECTORY);
  try {
    if (!isOfContainer(pid, containerId)) {
      throw new Fault("ENDED", "The process no longer belongs to the container", {
        remedy: "The container has ended or was restarted. Run the command again.",
      });
    }
    return use(root);
  } finally {
    closeQuietly(root);
  }
}

/** The first bytes of a regular file under a root; undefined if there is none. */
export function readUnder(root: number, path: string, bytesMax: number): Buffer | undefined {
  try {
    return readRegular((flags) => openInRoot(root, path, flags), bytesMax);
  } catch {
    return undefined;
  }
}
