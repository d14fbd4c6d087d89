/**
 * Finds the control socket of the instance that serves an engine. The engine knows its own id; where it is away, the only
 * folder there is must be it.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";

import { Engine } from "../container/watch/engine.ts";
import { engineAddress } from "../container/watch/engine-address.ts";
import { controlPath, instanceFolder } from "../instance/instance.ts";

export async function locateControl(stateDir: string, host: string | undefined): Promise<string> {
  const { socketPath } = engineAddress(host, process.env);
  try {
    const { id } = await new Engine(socketPath).describe();
    return controlPath(instanceFolder(stateDir, id));
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
