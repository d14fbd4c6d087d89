/**
 * Control: the socket through which people and programs look into a running dns11. Paths under /v1/, JSON; readable by root
 * and by the group that may talk to Docker, because it tells nothing that Docker does not.
 */
import { chmodSync, chownSync, readFileSync, rmSync } from "node:fs";
import { type Server, createServer } from "node:http";

import { LIMITS } from "../base/limits.ts";
import { codeOf } from "../base/lib/fault.ts";
import { type Routes, serveRoutes } from "./http.ts";

const MODE = 0o660;
const ROOT = 0;

export class ControlSocket {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async listen(path: string, routes: Routes): Promise<ControlSocket> {
    const server = serveRoutes(createServer(), routes);
    server.maxConnections = LIMITS.controlConnections;
    // Whoever left a socket here is gone: we hold the lock.
    rmSync(path, { force: true });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(path, resolve);
    });
    // A connection that cannot be taken, for want of descriptors, is that connection's misfortune.
    server.on("error", () => undefined);
    chmodSync(path, MODE);
    allowGroup("docker", path);
    return new ControlSocket(server);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Where the group does not exist, or files may not be given to it, root alone may ask. */
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
