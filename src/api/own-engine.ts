/**
 * OwnEngine: the rootless engine of the user who runs the command. Its socket is in the user's runtime directory, and so
 * is the state of the dns11 that serves it: that dns11 has the rights of this user only. Root has none: the machine's
 * engine is not rootless.
 */
import { statSync } from "node:fs";
import { join } from "node:path";

const ROOT = 0;

/** The user's socket where there is one, at the place where Docker puts it. */
export function ownSocket(env: NodeJS.ProcessEnv, user: number): string | undefined {
  const folder = runtimeFolder(env, user);
  const path = folder === undefined ? undefined : join(folder, "docker.sock");
  return path !== undefined && ownerOf(path) === user ? path : undefined;
}

/** Whether it is the user's own engine; one that is away by the place of its socket. */
export function isOwnEngine(socketPath: string, env: NodeJS.ProcessEnv, user: number): boolean {
  if (user === ROOT) return false;
  const folder = runtimeFolder(env, user);
  const owner = ownerOf(socketPath);
  return owner === undefined ? folder !== undefined && socketPath.startsWith(`${folder}/`) : owner === user;
}

/** The owner of a file; undefined if it does not exist, or is hidden from this user. */
export function ownerOf(path: string): number | undefined {
  try {
    return statSync(path).uid;
  } catch {
    return undefined;
  }
}

/** The folder in which a user's programs keep their sockets; undefined for root. */
export function runtimeFolder(env: NodeJS.ProcessEnv, user: number): string | undefined {
  const folder = env["XDG_RUNTIME_DIR"];
  return user === ROOT || folder === undefined || !folder.startsWith("/") ? undefined : folder;
}
