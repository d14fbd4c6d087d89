/**
 * Locate: finds the control socket of the instance that serves an engine, by the engine's ID. An engine that does not respond
 * has no ID: then it is the instance that reports this engine's socket. The only instance does for any engine only if
 * nobody has named one.
 */
import { readdirSync, realpathSync } from "node:fs";
import { dirname, basename, join } from "node:path";

import { Fault, codeOf } from "../base/lib/fault.ts";
import { ControlClient } from "./control-client.ts";
import { BY_DEFAULT, engineAddress } from "./engine-address.ts";
import { engineId } from "./engine-id.ts";
import { controlPath, instanceFolder } from "./state-paths.ts";

interface Instance {
  readonly path: string;
  /** The engine socket that it serves; undefined if it does not respond. */
  readonly engine: string | undefined;
}

/** Errors that mean that no engine listens at a socket. */
const ABSENT = new Set(["ENGINE_NO_SOCKET", "ENGINE_AWAY"]);

export async function locateControl(stateDir: string, host: string | undefined): Promise<string> {
  const { socketPath, source } = engineAddress(host, process.env);
  const isDefault = source === BY_DEFAULT;
  try {
    return controlPath(instanceFolder(stateDir, await engineId(socketPath)));
  } catch (error) {
    const paths = folders(stateDir).map((folder) => controlPath(join(stateDir, folder)));
    const [only, ...others] = paths;
    if (isDefault && only !== undefined && others.length === 0) return only;
    const instances = await Promise.all(paths.map(instanceAt));
    const found = instances.find(({ engine }) => engine !== undefined && isSamePath(engine, socketPath));
    if (found !== undefined) return found.path;
    throw isDefault || !ABSENT.has(codeOf(error) ?? "") ? error : noInstance(socketPath, instances);
  }
}

async function instanceAt(path: string): Promise<Instance> {
  try {
    const { engine } = await new ControlClient(path).status();
    return { path, engine: engine?.address };
  } catch {
    // It is not running, or not for this user.
    return { path, engine: undefined };
  }
}

function noInstance(socketPath: string, instances: readonly Instance[]): Fault {
  const served = instances.flatMap(({ engine }) => engine ?? []);
  const which = served.length === 0 ? "" : ` (one serves ${served.join(", another ")})`;
  return new Fault("NO_INSTANCE", `No engine at ${socketPath}, and no dns11 that serves it${which}`, {
    remedy: "Check the address given with -H, DOCKER_HOST, the docker context or `engine`.",
  });
}

/** The same socket, also through a link such as /var/run. The socket itself may be gone. */
function isSamePath(a: string, b: string): boolean {
  return a === b || realPath(a) === realPath(b);
}

function realPath(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch {
    return path;
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
