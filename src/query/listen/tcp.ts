/**
 * The TCP socket of one namespace: accepts connections, and keeps their number bounded by sending away the one that has
 * been silent longest.
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
  /** Nothing as long as somebody else accepts who comes. */
  #server: Server | undefined;
  readonly #clients: Share;
  readonly #connections = new Set<TcpConnection>();
  #isClosed = false;

  /** Takes over a listening socket. */
  constructor(fd: number, client: Client, parts: TcpParts) {
    this.#fd = fd;
    this.#client = client;
    this.#parts = parts;
    this.#clients = client.shares.clients;
    this.#server = this.#open(fd);
  }

  /** Leaves who comes in the socket, for somebody else to accept; conversations that are under way go on. Returns its number. */
  pause(): number {
    if (this.#isClosed || this.#server === undefined) return this.#fd;
    const kept = duplicate(this.#fd);
    this.#server.close();
    this.#server = undefined;
    this.#fd = kept;
    return kept;
  }

  /** Accepts again. */
  resume(): void {
    if (!this.#isClosed) this.#server ??= this.#open(this.#fd);
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
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#server === undefined) closeQuietly(this.#fd);
    else this.#server.close();
    for (const connection of this.#connections) connection.destroy();
  }

  #open(fd: number): Server {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket));
    server.on("error", (error) => guard.report(error, "tcp", this.#client.number));
    return server.listen({ fd, backlog: LIMITS.tcpBacklog });
  }

  #accept(socket: Socket): void {
    if (!this.#makeRoom()) {
      socket.destroy();
      return;
    }
    const isWhole = guard.run("tcp", this.#client.number, () => {
      const onClosed = (connection: TcpConnection): void => this.#forget(connection);
      this.#connections.add(new TcpConnection(socket, this.#client, this.#parts, onClosed));
    });
    if (!isWhole) {
      this.#clients.give(1);
      socket.destroy();
    }
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
