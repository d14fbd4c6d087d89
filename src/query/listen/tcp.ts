/**
 * TcpListener: a listening TCP socket: that of one namespace, or one that several clients connect to.
 */
import { type Server, type Socket, createServer } from "node:net";
import { LIMITS } from "../../base/limits.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import { guard } from "../../base/lib/guard.ts";
import type { Client } from "../client/client.ts";
import { TcpConnection, type TcpParts } from "./tcp-connection.ts";

/** Whose connections a socket accepts. */
export interface ConnectionOwners {
  /** The number of the client of all of them; 0 if several share the socket. */
  readonly clientNumber: number;
  /** The connections of the client that this one is from; undefined if there is no such client. */
  of(socket: Socket): ClientConnections | undefined;
}

export class TcpListener {
  readonly #connectionOwners: ConnectionOwners;
  #fd: number;
  /** Undefined while another process accepts the connections. */
  #server: Server | undefined;
  #isClosed = false;

  /** Takes ownership of a listening socket. */
  constructor(fd: number, connectionOwners: ConnectionOwners) {
    this.#fd = fd;
    this.#connectionOwners = connectionOwners;
    this.#server = this.#open(fd);
  }

  get fd(): number {
    return this.#fd;
  }

  /**
   * Leaves new connections in the socket for another process to accept; open connections continue. The socket goes on with
   * `kept`, another descriptor for it. Returns the descriptor.
   */
  pause(kept: number): number {
    if (this.#isClosed || this.#server === undefined) {
      closeQuietly(kept);
      return this.#fd;
    }
    this.#server.close();
    this.#server = undefined;
    this.#fd = kept;
    return kept;
  }

  /** Accepts connections again. */
  resume(): void {
    if (!this.#isClosed) this.#server ??= this.#open(this.#fd);
  }

  /** Stops accepting; open connections continue. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.#server === undefined) closeQuietly(this.#fd);
    else this.#server.close();
  }

  #open(fd: number): Server {
    const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
      this.#accept(socket),
    );
    server.on("error", (error) => guard.report(error, "tcp", this.#connectionOwners.clientNumber));
    return server.listen({ fd, backlog: LIMITS.tcpBacklog });
  }

  #accept(socket: Socket): void {
    const isDone = guard.run("tcp", this.#connectionOwners.clientNumber, () => {
      const connections = this.#connectionOwners.of(socket);
      if (connections === undefined) socket.destroy();
      else connections.accept(socket);
    });
    if (!isDone) socket.destroy();
  }
}

/** The TCP connections of one client. At its limit, the one that has been idle longest makes room. */
export class ClientConnections {
  readonly #client: Client;
  readonly #parts: TcpParts;
  readonly #open = new Set<TcpConnection>();

  constructor(client: Client, parts: TcpParts) {
    this.#client = client;
    this.#parts = parts;
  }

  get count(): number {
    return this.#open.size;
  }

  /** Client ports of the connections with unfinished work. */
  get busyPorts(): number[] {
    return [...this.#open].flatMap((connection) => connection.busyPort ?? []);
  }

  accept(socket: Socket): void {
    if (!this.#makeRoom()) {
      socket.destroy();
      return;
    }
    const isAccepted = guard.run("tcp", this.#client.number, () => {
      const onClosed = (connection: TcpConnection): void => this.#remove(connection);
      this.#open.add(new TcpConnection(socket, this.#client, this.#parts, onClosed));
    });
    if (!isAccepted) {
      this.#client.shares.clients.give(1);
      socket.destroy();
    }
  }

  close(): void {
    for (const connection of this.#open) connection.destroy();
  }

  /** Takes room for one more connection, if necessary by closing an idle one; returns whether there is room. */
  #makeRoom(): boolean {
    const { clients } = this.#client.shares;
    if (clients.take(1)) return true;
    const idle = this.#longestIdle();
    if (idle === undefined) return false;
    idle.destroy();
    this.#remove(idle);
    return clients.take(1);
  }

  #remove(connection: TcpConnection): void {
    if (this.#open.delete(connection)) this.#client.shares.clients.give(1);
  }

  #longestIdle(): TcpConnection | undefined {
    let oldest: TcpConnection | undefined;
    for (const connection of this.#open) {
      if (oldest === undefined || connection.lastActiveMs < oldest.lastActiveMs) oldest = connection;
    }
    return oldest;
  }
}
