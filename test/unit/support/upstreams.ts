// Upstream servers of the forwarder's tests: real sockets on loopback that run the test's script for each query and
// record the queries.

import { type Socket as UdpSocket, createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, type Server as TcpServer, type Socket, createServer } from "node:net";

import type { Server } from "../../../src/base/model/view.ts";
import { StreamReader, withLength } from "../../../src/base/lib/stream-reader.ts";
import { LOOPBACK, bindUdp } from "./loopback.ts";

export type UdpScript = (query: Buffer, reply: (message: Uint8Array) => void) => void;
export type TcpScript = (query: Buffer, socket: Socket) => void;

abstract class Upstream implements AsyncDisposable {
  readonly queries: Buffer[] = [];
  abstract readonly server: Server;
  #onQuery: (() => void) | undefined;

  protected noteQuery(query: Buffer): void {
    this.queries.push(query);
    this.#onQuery?.();
  }

  // Waits for this many queries in all.
  async receives(count: number): Promise<void> {
    while (this.queries.length < count) await new Promise<void>((resolve) => (this.#onQuery = resolve));
  }

  abstract [Symbol.asyncDispose](): Promise<void>;
}

export class UdpUpstream extends Upstream {
  readonly server: Server;
  readonly #socket: UdpSocket = createSocket("udp4");

  constructor(script: UdpScript, from: Server["from"] = "container") {
    super();
    const { fd, port } = bindUdp();
    this.server = { from, address: LOOPBACK, port };
    this.#socket.on("message", (query, client) => {
      this.noteQuery(query);
      script(query, (message) => this.#socket.send(message, client.port, client.address));
    });
    this.#socket.bind({ fd });
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await once(this.#socket, "close");
  }
}

export class TcpUpstream extends Upstream {
  readonly server: Server;
  readonly #listener: TcpServer;
  readonly #sockets = new Set<Socket>();

  private constructor(listener: TcpServer) {
    super();
    this.#listener = listener;
    this.server = { from: "container", address: LOOPBACK, port: (listener.address() as AddressInfo).port };
  }

  static async start(script: TcpScript, port = 0): Promise<TcpUpstream> {
    const listener = createServer((socket) => upstream.#serve(socket, script));
    listener.listen(port, LOOPBACK);
    await once(listener, "listening");
    const upstream = new TcpUpstream(listener);
    return upstream;
  }

  // Number of connections that the client has not closed.
  get open(): number {
    return this.#sockets.size;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    for (const socket of this.#sockets) socket.destroy();
    await once(this.#listener, "close");
  }

  #serve(socket: Socket, script: TcpScript): void {
    const reader = new StreamReader();
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      reader.push(chunk);
      for (let query = reader.next(); query !== undefined; query = reader.next()) {
        this.noteQuery(Buffer.from(query));
        script(Buffer.from(query), socket);
      }
    });
  }
}

// A server on one port by both transports.
export async function startBoth(udp: UdpScript, tcp: TcpScript): Promise<readonly [UdpUpstream, TcpUpstream]> {
  for (;;) {
    const datagrams = new UdpUpstream(udp);
    try {
      return [datagrams, await TcpUpstream.start(tcp, datagrams.server.port)];
    } catch {
      // Another process uses the port by TCP.
      await datagrams[Symbol.asyncDispose]();
    }
  }
}

// A port that is closed: it was open a moment ago.
export async function closedUdpServer(): Promise<Server> {
  const upstream = new UdpUpstream(() => undefined);
  await upstream[Symbol.asyncDispose]();
  return upstream.server;
}

export async function closedTcpServer(): Promise<Server> {
  const upstream = await TcpUpstream.start(() => undefined);
  await upstream[Symbol.asyncDispose]();
  return upstream.server;
}

// Writes one length-prefixed message.
export function write(socket: Socket, message: Uint8Array): void {
  socket.write(withLength(message));
}
