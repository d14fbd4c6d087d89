/**
 * The TCP socket of one namespace: accepts connections, and keeps their number bounded by sending away the one that has
 * been silent longest.
 */
import { type Server, createServer } from "node:net";

import { LIMITS } from "../../config/limits.ts";
import type { Asker } from "../asker/asker.ts";
import { guard } from "../../lib/guard.ts";
import type { Share } from "../../lib/share.ts";
import { TcpConnection, type TcpParts } from "./tcp-connection.ts";

export class TcpListener {
  readonly #server: Server;
  readonly #clients: Share;
  readonly #connections = new Set<TcpConnection>();

  /** Takes over a listening socket. */
  constructor(fd: number, asker: Asker, parts: TcpParts) {
    this.#clients = asker.shares.clients;
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      if (!this.#makeRoom()) {
        socket.destroy();
        return;
      }
      const isWhole = guard.run("tcp", asker.number, () => {
        this.#connections.add(new TcpConnection(socket, asker, parts, (connection) => this.#forget(connection)));
      });
      if (!isWhole) {
        this.#clients.give(1);
        socket.destroy();
      }
    });
    this.#server.on("error", (error) => guard.tell(error, "tcp", asker.number));
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

  /** Whether there is room for one more, if need be because another one has to go. */
  #makeRoom(): boolean {
    if (this.#clients.take(1)) return true;
    const silent = this.#longestSilent();
    if (silent === undefined) return false;
    silent.destroy();
    this.#forget(silent);
    return this.#clients.take(1);
  }

  #forget(connection: TcpConnection): void {
    if (this.#connections.delete(connection)) this.#clients.give(1);
  }

  #longestSilent(): TcpConnection | undefined {
    let oldest: TcpConnection | undefined;
    for (const connection of this.#connections) {
      if (oldest === undefined || connection.lastActiveMs < oldest.lastActiveMs) oldest = connection;
    }
    return oldest;
  }
}
