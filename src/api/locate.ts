/**
 * Locate: finds the control socket of the instance that serves an engine, by the engine's ID. If the engine does not respond
 * and there is only one instance directory, it is that one.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";

import { engineAddress } from "./engine-address.ts";
import { engineId } from "./engine-id.ts";
import { controlPath, instanceFolder } from "./state-paths.ts";

export async function locateControl(stateDir: string, host: string | undefined): Promise<string> {
  const { socketPath } = engineAddress(host, process.env);
  try {
    return controlPath(instanceFolder(stateDir, await engineId(socketPath)));
  } catch (error) {
    const [only, ...others] = folders(stateDir);
    if (only === undefined || others.length > 0) throw error;
    return controlPath(join(stateDir, only));
  }
}

function folders(stateDir: string): string[] {
  try {
    return readdirSync(stateDir, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}
