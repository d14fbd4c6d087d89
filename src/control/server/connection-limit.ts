/**
 * ConnectionLimit: bounds the connections of a port that any process on the machine can connect to. At the limit a new
 * connection replaces the oldest one without a request, or else the oldest one: idle connections cannot block others, because
 * a real client sends its request at once.
 */
import type { Server } from "node:http";
import type { Duplex } from "node:stream";

export class ConnectionLimit {
  readonly #max: number;
  /** In order of arrival, with whether a request has arrived. */
  readonly #open = new Map<Duplex, boolean>();

  constructor(server: Server, max: number) {
    this.#max = max;
    server.on("connection", (socket: Duplex) => this.#enter(socket));
    server.on("request", ({ socket }) => {
      if (this.#open.has(socket)) this.#open.set(socket, true);
    });
  }

  /** Closes all connections. */
  close(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }

  #enter(socket: Duplex): void {
    if (this.#open.size >= this.#max) {
      const all = [...this.#open];
      const [evicted] = all.find(([, hasRequest]) => !hasRequest) ?? all[0] ?? [];
      if (evicted !== undefined) {
        this.#open.delete(evicted);
        evicted.destroy();
      }
    }
    this.#open.set(socket, false);
    socket.once("close", () => this.#open.delete(socket));
  }
}
