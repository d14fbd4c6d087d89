/**
 * Locate: finds the control socket of the instance that serves an engine, by the engine's ID. An engine that does not respond
 * has no ID, and one that hangs is not waited for: then it is the instance that reports this engine's socket. The only instance does for any engine only if
 * nobody has named one.
 */
import { readdirSync, realpathSync } from "node:fs";
import { dirname, basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LIMITS } from "../base/limits.ts";
import { Fault, codeOf, engineFault } from "../base/lib/fault.ts";
import { ControlClient } from "./control-client.ts";
import { BY_DEFAULT, engineAddress } from "./engine-address.ts";
import { controlPath, instanceFolder } from "./state-paths.ts";
import { openUnix, textOf } from "./unix-http.ts";

interface Instance {
  readonly path: string;
  /** The engine socket that it serves; undefined if it does not respond. */
  readonly engine: string | undefined;
  readonly id: string | undefined;
  readonly pid: number | undefined;
}

/** Errors that mean that no engine listens at a socket. */
const ABSENT = new Set(["ENGINE_NO_SOCKET", "ENGINE_AWAY"]);

/** `onSilent` hears that the engine leaves its question unanswered, and whether an instance is found without it. */
export async function locateControl(
  stateDir: string,
  host: string | undefined,
  onSilent: (silent: { readonly socketPath: string; readonly isFound: boolean }) => void = () => undefined,
): Promise<string> {
  const { socketPath, source } = engineAddress(host, process.env);
  const isDefault = source === BY_DEFAULT;
  const id = engineId(socketPath);
  try {
    const found = await Promise.race([id, servingWhileSilent(id, stateDir, socketPath, onSilent)]);
    return controlPath(instanceFolder(stateDir, found));
  } catch (error) {
    const paths = controlPaths(stateDir);
    const [only, ...others] = paths;
    if (isDefault && only !== undefined && others.length === 0) return only;
    const instances = await Promise.all(paths.map(instanceAt));
    const found = servingAt(socketPath, instances);
    if (found !== undefined) return found.path;
    throw isDefault || !ABSENT.has(codeOf(error) ?? "") ? error : noInstance(socketPath, instances);
  }
}

/** The ID of the engine as an instance knows it that serves this socket; where none does, the engine's own answer is waited for. */
async function servingWhileSilent(
  id: Promise<string>,
  stateDir: string,
  socketPath: string,
  onSilent: NonNullable<Parameters<typeof locateControl>[2]>,
): Promise<string> {
  const isOver = await Promise.race([
    id.then(
      () => true,
      () => true,
    ),
    sleep(LIMITS.engineSilentMs, false),
  ]);
  if (isOver) return await id;
  const found = servingAt(socketPath, await Promise.all(controlPaths(stateDir).map(instanceAt)));
  onSilent({ socketPath, isFound: found !== undefined });
  return found?.id ?? (await id);
}

function servingAt(socketPath: string, instances: readonly Instance[]): Instance | undefined {
  return instances.find(({ engine }) => engine !== undefined && isSamePath(engine, socketPath));
}

function controlPaths(stateDir: string): string[] {
  return folders(stateDir).map((folder) => controlPath(join(stateDir, folder)));
}

/** The control socket of the instance that runs as this process, whichever engine it serves. */
export async function locateProcess(stateDir: string, pid: number): Promise<string> {
  const instances = await Promise.all(controlPaths(stateDir).map(instanceAt));
  const found = instances.find((each) => each.pid === pid);
  if (found !== undefined) return found.path;
  throw new Fault("NOT_RUNNING", `No dns11 answers as process ${pid} in the state directory "${stateDir}"`, {
    remedy: "It may still be starting: systemctl status dns11.",
  });
}

async function instanceAt(path: string): Promise<Instance> {
  try {
    const { engine, pid } = await new ControlClient(path).status();
    return { path, engine: engine?.address, id: engine?.id, pid };
  } catch {
    // It is not running, or not for this user.
    return { path, engine: undefined, id: undefined, pid: undefined };
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

/** Throws a Fault with the path of the socket. */
async function engineId(socketPath: string): Promise<string> {
  try {
    const signal = AbortSignal.timeout(LIMITS.listMs);
    const answer = await openUnix(socketPath, "/info", { timeoutMs: LIMITS.listMs, signal });
    const text = await textOf(answer);
    if (answer.statusCode !== 200) throw new Error(`it responded with status ${answer.statusCode}`);
    const { ID: id } = JSON.parse(text) as { readonly ID?: string };
    return id ?? "";
  } catch (error) {
    throw engineFault(error, socketPath);
  }
}
