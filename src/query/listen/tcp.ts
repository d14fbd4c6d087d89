/**
 * TcpListener: a listening TCP socket: that of one namespace, or one that several clients connect to.
 */
import { type Server, type Socket, createServer } from "node:net";

import { LIMITS } from "../../base/limits.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import { guard } from "../../base/lib/guard.ts";
import type { ClientConnections } from "./client-connections.ts";

/** Whose connections a socket accepts. */
export interface Connecters {
  /** The number of the client of all of them; 0 if several share the socket. */
  readonly clientNumber: number;
  /** The connections of the client that this one is from; undefined if that is nobody. */
  of(socket: Socket): ClientConnections | undefined;
}

export class TcpListener {
  readonly #connecters: Connecters;
  #fd: number;
  /** Undefined while another process accepts the connections. */
  #server: Server | undefined;
  #isClosed = false;

  /** Takes ownership of a listening socket. */
  constructor(fd: number, connecters: Connecters) {
    this.#fd = fd;
    this.#connecters = connecters;
    this.#server = this.#open(fd);
  }

  /** Of the socket, as long as it is open. */
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
    server.on("error", (error) => guard.report(error, "tcp", this.#connecters.clientNumber));
    return server.listen({ fd, backlog: LIMITS.tcpBacklog });
  }

  #accept(socket: Socket): void {
    const isDone = guard.run("tcp", this.#connecters.clientNumber, () => {
      const connections = this.#connecters.of(socket);
      if (connections === undefined) socket.destroy();
      else connections.accept(socket);
    });
    if (!isDone) socket.destroy();
  }
}
