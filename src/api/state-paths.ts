/**
 * Place: where the instance of an engine keeps its lock and its control socket.
 */
import { join } from "node:path";

/** The folder of an engine, whose id may hold characters that a path should not. */
export function instanceFolder(stateDir: string, engineId: string): string {
  return join(stateDir, engineId.replaceAll(/[^\w-]/g, "_") || "unknown");
}

export function controlPath(folder: string): string {
  return join(folder, "control.sock");
}
