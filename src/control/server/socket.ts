/**
 * ControlSocket: the unix socket of the API (JSON over HTTP, paths under /v1/). Accessible to root and the group docker,
 * because it exposes nothing that Docker does not; beside a rootless engine, to its user.
 */
import { chmodSync, chownSync, readFileSync, rmSync } from "node:fs";
import { type Server, createServer } from "node:http";

import { LIMITS } from "../../base/limits.ts";
import { codeOf } from "../../base/lib/fault.ts";
import { type Routes, serveRoutes } from "./http.ts";

const SHARED_MODE = 0o660;
const OWN_MODE = 0o600;
const ROOT = 0;

export class ControlSocket {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async listen(path: string, routes: Routes, isShared: boolean): Promise<ControlSocket> {
    const server = serveRoutes(createServer(), routes);
    server.maxConnections = LIMITS.controlConnections;
    // We hold the lock, so an existing socket is a leftover.
    rmSync(path, { force: true });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(path, resolve);
    });
    // A connection that cannot be accepted, for lack of file descriptors, affects no other.
    server.on("error", () => undefined);
    chmodSync(path, isShared ? SHARED_MODE : OWN_MODE);
    if (isShared) allowGroup("docker", path);
    return new ControlSocket(server);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** If the group does not exist or the file cannot be given to it, only root has access. */
function allowGroup(group: string, path: string): void {
  const id = groupId(group);
  if (id === undefined) return;
  try {
    chownSync(path, ROOT, id);
  } catch (error) {
    if (codeOf(error) !== "EPERM") throw error;
  }
}

function groupId(name: string): number | undefined {
  try {
    const line = readFileSync("/etc/group", "utf8")
      .split("\n")
      .find((entry) => entry.startsWith(`${name}:`));
    return line === undefined ? undefined : Number(line.split(":")[2]);
  } catch {
    return undefined;
  }
}
