// Servers of tests by TLS: real ones on loopback, with certificates of an authority of the test.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { type Server as TlsServer, type TLSSocket, type TlsOptions, createServer } from "node:tls";

import { StreamReader } from "../../../src/base/lib/stream-reader.ts";
import type { Server } from "../../../src/base/model/view.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { Authority, type CertificateOptions } from "../../support/servers/authority.ts";
import { LOOPBACK } from "./loopback.ts";
import type { TcpScript } from "./upstreams.ts";

export const TLS_NAME = "dns.test";

type TlsUpstreamParts = {
  readonly script: TcpScript;
  readonly certificate?: Partial<CertificateOptions>;
  readonly options?: TlsOptions;
};

let made: Promise<Authority> | undefined;

// One for all tests of a file.
export async function testAuthority(): Promise<Authority> {
  made ??= Authority.make(join(makeFolder("tls"), "authority"));
  return await made;
}

export class TlsUpstream implements AsyncDisposable {
  readonly server: Server;
  readonly queries: Buffer[] = [];
  // Of each connection whose handshake was completed: whether it was resumed.
  readonly resumed: boolean[] = [];
  readonly #listener: TlsServer;
  readonly #sockets = new Set<Socket>();

  private constructor(listener: TlsServer) {
    this.#listener = listener;
    const { port } = listener.address() as AddressInfo;
    this.server = { from: "container", address: LOOPBACK, port, tls: TLS_NAME };
  }

  static async start({ script, certificate, options }: TlsUpstreamParts): Promise<TlsUpstream> {
    const authority = await testAuthority();
    const { cert, key } = await authority.sign({ names: [`DNS:${TLS_NAME}`], ...certificate });
    const files = { cert: readFileSync(cert), key: readFileSync(key) };
    const listener = createServer({ ...files, ...options }, (socket) => upstream.#serve(socket, script));
    listener.on("tlsClientError", () => undefined);
    listener.on("connection", (socket: Socket) => upstream.#keep(socket));
    listener.listen(0, LOOPBACK);
    await once(listener, "listening");
    const upstream = new TlsUpstream(listener);
    return upstream;
  }

  get open(): number {
    return this.#sockets.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#listener, "close");
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
  }

  #serve(socket: TLSSocket, script: TcpScript): void {
    const reader = new StreamReader();
    this.resumed.push(socket.isSessionReused());
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      reader.push(chunk);
      for (let query = reader.next(); query !== undefined; query = reader.next()) {
        this.queries.push(Buffer.from(query));
        script(Buffer.from(query), socket);
      }
    });
  }
}
