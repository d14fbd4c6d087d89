// Servers that greet whoever connects, on a port in a namespace, until they are closed.

import { type Server, type Socket, createServer } from "node:net";

export class Greeters implements AsyncDisposable {
  readonly #servers: Server[] = [];
  readonly #connections = new Set<Socket>();

  // `within` runs a function in the namespace.
  async open(port: number, within: (listen: () => void) => void): Promise<void> {
    const server = createServer((connection) => {
      this.#connections.add(connection);
      connection.on("error", () => undefined);
      connection.on("close", () => this.#connections.delete(connection));
      connection.write("ok");
    });
    this.#servers.push(server);
    await new Promise<void>((resolve) => within(() => void server.listen(port, resolve)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of this.#connections) each.destroy();
    for (const each of this.#servers) await new Promise((resolve) => each.close(resolve));
  }
}
