/**
 * StatePaths: the paths of an instance's directory, with its lock and control socket.
 */
import { join } from "node:path";

/** The directory of an instance. Characters of the engine ID that are unsafe in a path are replaced. */
export function instanceFolder(stateDir: string, engineId: string): string {
  return join(stateDir, engineId.replaceAll(/[^\w-]/g, "_") || "unknown");
}

export function controlPath(folder: string): string {
  return join(folder, "control.sock");
}
