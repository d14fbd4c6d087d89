/**
 * StatePaths: the paths of an instance's directory, with its lock and control socket, and the directory of all instances.
 */
import { join } from "node:path";
import { engineAddress, isOwnEngine, runtimeFolder } from "./engine-address.ts";
import { existsSync } from "node:fs";

/** The folder for engines that run as root. */
export const DEFAULT_STATE_DIR = "/run/dns11";

/** The state directory of the dns11 that serves the engine which -H selects, unless another one is set. */
export function defaultStateDir(
  host: string | undefined,
  env: NodeJS.ProcessEnv = process.env,
  user = process.getuid?.() ?? 0,
): string {
  try {
    const { socketPath } = engineAddress(host, env, user);
    const folder = isOwnEngine(socketPath, env, user) ? runtimeFolder(env, user) : undefined;
    return folder === undefined ? DEFAULT_STATE_DIR : join(folder, "dns11");
  } catch {
    // An address that cannot be used is reported where it is used.
    return DEFAULT_STATE_DIR;
  }
}

/** The directory of an instance. Characters of the engine ID that are unsafe in a path are replaced. */
export function instanceFolder(stateDir: string, engineId: string): string {
  return join(stateDir, engineId.replaceAll(/[^\w-]/g, "_") || "unknown");
}

export function controlPath(folder: string): string {
  return join(folder, "control.sock");
}

/** Of the keeper. It is not longer than that of the control socket, whose length is checked at the start. */
export function keeperPath(folder: string): string {
  return join(folder, "keeper", "sock");
}

const UNITS = ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];

/** How whoever finds that dns11 is not running starts it: by its unit, where one is installed. */
export function startRemedy(otherwise: string, folders: readonly string[] = UNITS): string {
  const isInstalled = folders.some((folder) => existsSync(`${folder}/dns11.service`));
  return isInstalled
    ? "Start it with: sudo systemctl start dns11. If it has ended: journalctl -u dns11"
    : `Start it with: ${otherwise}`;
}
