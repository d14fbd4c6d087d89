/**
 * ClientConnections: the TCP connections of one client. At its limit, the one that has been idle longest makes room.
 */
import type { Socket } from "node:net";

import { guard } from "../../base/lib/guard.ts";
import type { Client } from "../client/client.ts";
import { TcpConnection, type TcpParts } from "./tcp-connection.ts";

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
