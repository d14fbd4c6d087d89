/**
 * The TCP socket of one namespace: accepts connections, and keeps their number bounded by sending away the one that has
 * been silent longest.
 */
import { type Server, createServer } from "node:net";

import { LIMITS } from "../../config/limits.ts";
import type { Asker } from "../asker.ts";
import { TcpConnection, type TcpParts } from "./tcp-connection.ts";

export class TcpListener {
  readonly #server: Server;
  readonly #connections = new Set<TcpConnection>();

  /** Takes over a listening socket. */
  constructor(fd: number, asker: Asker, parts: TcpParts) {
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      if (this.#connections.size >= LIMITS.tcpConnections) this.#longestSilent()?.destroy();
      this.#connections.add(
        new TcpConnection(socket, asker, parts, (connection) => this.#connections.delete(connection)),
      );
    });
    this.#server.on("error", parts.onDefect);
    this.#server.listen({ fd, backlog: LIMITS.tcpBacklog });
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Client ports of the connections on which something is still to be said. */
  get busyPorts(): number[] {
    return [...this.#connections].flatMap((connection) => connection.busyPort ?? []);
  }

  /** Accepts nobody any more and cuts off whoever is there. */
  close(): void {
    this.#server.close();
    for (const connection of this.#connections) connection.destroy();
  }

  #longestSilent(): TcpConnection | undefined {
    let oldest: TcpConnection | undefined;
    for (const connection of this.#connections) {
      if (oldest === undefined || connection.lastActiveMs < oldest.lastActiveMs) oldest = connection;
    }
    return oldest;
  }
}
