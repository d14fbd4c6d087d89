/**
 * Loopback: listens on both loopback addresses with one port. Browsers resolve names below `localhost` to ::1 as well as to
 * 127.0.0.1: another user's program on the other address would get the page's URL, and its script the token.
 */
import { once } from "node:events";
import type { Server as HttpServer } from "node:http";
import { type AddressInfo, type Server, type Socket, createServer } from "node:net";

import { Fault, codeOf } from "../../base/lib/fault.ts";

const V4 = "127.0.0.1";
const V6 = "::1";
/** Errors of a machine without IPv6, where nobody else can listen on ::1 either. */
const NO_IPV6 = new Set(["EADDRNOTAVAIL", "EAFNOSUPPORT"]);
/** Free ports of one address that are tried on the other one. */
const TRIES = 8;

export class Loopback {
  readonly #v4: HttpServer;
  readonly #v6: Server;

  private constructor(v4: HttpServer) {
    this.#v4 = v4;
    this.#v6 = createServer((socket: Socket) => void v4.emit("connection", socket));
  }

  /** Has the server accept connections of both addresses; port 0 is any that is free on both. */
  static async listen(server: HttpServer, port: number): Promise<Loopback> {
    const loopback = new Loopback(server);
    for (let tries = port === 0 ? TRIES : 1; ; tries--) {
      await listening(server, port, V4);
      try {
        await listening(loopback.#v6, loopback.port, V6);
        break;
      } catch (error) {
        if (error instanceof Fault && NO_IPV6.has(codeOf(error.cause) ?? "")) break;
        server.close();
        await once(server, "close");
        if (tries === 1) throw error;
      }
    }
    // A connection that cannot be accepted, for lack of file descriptors, affects no other.
    for (const each of [server, loopback.#v6]) each.on("error", () => undefined);
    return loopback;
  }

  get port(): number {
    return (this.#v4.address() as AddressInfo).port;
  }

  close(): void {
    if (this.#v6.listening) this.#v6.close();
    this.#v4.close();
    this.#v4.closeAllConnections();
  }
}

async function listening(server: HttpServer | Server, port: number, address: string): Promise<void> {
  try {
    server.listen(port, address);
    await once(server, "listening");
  } catch (cause) {
    throw portFault(port, address, cause);
  }
}

function portFault(port: number, address: string, cause: unknown): Fault {
  if (codeOf(cause) === "EADDRINUSE") {
    return new Fault("UI_PORT", `Port ${port} of ${address} is in use`, {
      remedy: "Choose another one with --port, or any free one with --port 0.",
    });
  }
  return new Fault("UI_PORT", `Cannot listen on port ${port} of ${address}`, {
    cause,
    remedy: "Choose another one with --port, or any free one with --port 0.",
  });
}
