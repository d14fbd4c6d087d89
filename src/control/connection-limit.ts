/**
 * ConnectionRoom: so many connections at a port that anybody on the machine may connect to. When it is full the next one
 * gets the place of the one that has been silent longest, and only when all have asked, of the oldest: whoever connects and
 * says nothing keeps nobody out, because who means it asks as soon as he is connected.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";

export class ConnectionLimit {
  readonly #max: number;
  /** In the order in which they came; whether they have asked. */
  readonly #open = new Map<Socket, boolean>();

  constructor(server: Server, max: number) {
    this.#max = max;
    server.on("connection", (socket: Socket) => this.#enter(socket));
    server.on("request", ({ socket }) => {
      if (this.#open.has(socket)) this.#open.set(socket, true);
    });
  }

  #enter(socket: Socket): void {
    if (this.#open.size >= this.#max) {
      const all = [...this.#open];
      const [leaving] = all.find(([, hasAsked]) => !hasAsked) ?? all[0] ?? [];
      if (leaving !== undefined) {
        this.#open.delete(leaving);
        leaving.destroy();
      }
    }
    this.#open.set(socket, false);
    socket.once("close", () => this.#open.delete(socket));
  }
}
