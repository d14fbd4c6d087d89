/**
 * ControlSocket: the unix socket of the API (JSON over HTTP, paths under /v1/). Accessible to root and the group docker,
 * because it exposes nothing that Docker does not; beside a rootless engine, to its user.
 */
import { readFileSync, rmSync } from "node:fs";
import { type Server, createServer } from "node:http";

import { LIMITS } from "../../base/limits.ts";
import { SOCK_STREAM } from "../../kernel/libc.ts";
import { bindUnix } from "../../kernel/unix-listener.ts";
import { type Routes, serveRoutes } from "./http.ts";

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
    const fd = bindUnix(path, SOCK_STREAM, isShared ? (groupId("docker") ?? "own") : undefined);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ fd }, resolve);
    });
    // A connection that cannot be accepted, for lack of file descriptors, affects no other.
    server.on("error", () => undefined);
    return new ControlSocket(server);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Without such a group only root has access. */
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
