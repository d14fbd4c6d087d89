/**
 * TcpListener: the TCP socket of one namespace. It accepts connections and, at the limit, closes the one that has been
 * idle longest.
 */
import { type Server, type Socket, createServer } from "node:net";

import { LIMITS } from "../../base/limits.ts";
import { closeQuietly, duplicate } from "../../kernel/libc.ts";
import type { Client } from "../client/client.ts";
import { guard } from "../../base/lib/guard.ts";
import type { Share } from "../../base/lib/share.ts";
import { TcpConnection, type TcpParts } from "./tcp-connection.ts";

export class TcpListener {
  readonly #client: Client;
  readonly #parts: TcpParts;
  #fd: number;
  /** Undefined while another process accepts the connections. */
  #server: Server | undefined;
  readonly #clients: Share;
  readonly #connections = new Set<TcpConnection>();
  #isClosed = false;

  /** Takes ownership of a listening socket. */
  constructor(fd: number, client: Client, parts: TcpParts) {
    this.#fd = fd;
    this.#client = client;
    this.#parts = parts;
    this.#clients = client.shares.clients;
    this.#server = this.#open(fd);
  }

  /**
   * Leaves new connections in the socket for another process to accept; open connections continue. Returns its new
   * descriptor.
   */
  pause(): number {
    if (this.#isClosed || this.#server === undefined) return this.#fd;
    const kept = duplicate(this.#fd);
    this.#server.close();
    this.#server = undefined;
    this.#fd = kept;
    return kept;
  }

  /** Accepts connections again. */
  resume(): void {
    if (!this.#isClosed) this.#server ??= this.#open(this.#fd);
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Client ports of the connections with unfinished work. */
  get busyPorts(): number[] {
    return [...this.#connections].flatMap((connection) => connection.busyPort ?? []);
  }

  /** Stops accepting and closes all connections. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#server === undefined) closeQuietly(this.#fd);
    else this.#server.close();
    for (const connection of this.#connections) connection.destroy();
  }

  #open(fd: number): Server {
    const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
      this.#accept(socket),
    );
    server.on("error", (error) => guard.report(error, "tcp", this.#client.number));
    return server.listen({ fd, backlog: LIMITS.tcpBacklog });
  }

  #accept(socket: Socket): void {
    if (!this.#makeRoom()) {
      socket.destroy();
      return;
    }
    const isAccepted = guard.run("tcp", this.#client.number, () => {
      const onClosed = (connection: TcpConnection): void => this.#remove(connection);
      this.#connections.add(new TcpConnection(socket, this.#client, this.#parts, onClosed));
    });
    if (!isAccepted) {
      this.#clients.give(1);
      socket.destroy();
    }
  }

  /** Takes room for one more connection, if necessary by closing an idle one; returns whether there is room. */
  #makeRoom(): boolean {
    if (this.#clients.take(1)) return true;
    const idle = this.#longestIdle();
    if (idle === undefined) return false;
    idle.destroy();
    this.#remove(idle);
    return this.#clients.take(1);
  }

  #remove(connection: TcpConnection): void {
    if (this.#connections.delete(connection)) this.#clients.give(1);
  }

  #longestIdle(): TcpConnection | undefined {
    let oldest: TcpConnection | undefined;
    for (const connection of this.#connections) {
      if (oldest === undefined || connection.lastActiveMs < oldest.lastActiveMs) oldest = connection;
    }
    return oldest;
  }
}
