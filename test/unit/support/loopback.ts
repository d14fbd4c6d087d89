// Loopback sockets of the tests: those that the program takes over, created with its own calls, and clients that queue
// received messages.

import assert from "node:assert/strict";
import { type Socket as UdpSocket, createSocket } from "node:dgram";
import { once } from "node:events";
import { type Socket, connect } from "node:net";

import { LIMITS } from "../../../src/base/limits.ts";
import {
  AF_INET,
  SOCK_DGRAM,
  SOCK_STREAM,
  bindTo,
  connectTo,
  listenOn,
  localAddress,
  sendTo,
  socket,
} from "../../../src/kernel/libc.ts";
import { addressBytes, socketAddress } from "../../../src/base/model/address.ts";
import type { Server } from "../../../src/base/model/view.ts";
import { StreamReader, withLength } from "../../../src/base/lib/stream-reader.ts";

export const LOOPBACK = "127.0.0.1";

export type Bound = { readonly fd: number; readonly port: number };

export function bindUdp(): Bound {
  const fd = socket(AF_INET, SOCK_DGRAM);
  bindTo(fd, sockaddr(LOOPBACK, 0), LOOPBACK);
  return { fd, port: portOf(fd) };
}

export function bindTcp(): Bound {
  const fd = socket(AF_INET, SOCK_STREAM);
  bindTo(fd, sockaddr(LOOPBACK, 0), LOOPBACK);
  listenOn(fd, LIMITS.tcpBacklog);
  return { fd, port: portOf(fd) };
}

export function sockaddr(address: string, port: number): Buffer {
  return socketAddress(addressBytes(address) ?? assert.fail(`"${address}" is not an address`), port);
}

function portOf(fd: number): number {
  return localAddress(fd).readUInt16BE(2);
}

// Dials upstream servers as the program does, but without a namespace.
export function dialHere({ address, port }: Server, type: "udp" | "tcp"): number {
  const fd = socket(AF_INET, type === "udp" ? SOCK_DGRAM : SOCK_STREAM);
  connectTo(fd, sockaddr(address, port), address);
  return fd;
}

type Waiting<T> = { readonly resolve: (item: T) => void; readonly reject: (reason: Error) => void };

// Queue of items that are awaited one by one.
class Inbox<T> {
  readonly #items: T[] = [];
  readonly #waiting: Waiting<T>[] = [];
  #end: Error | undefined;

  put(item: T): void {
    const waiter = this.#waiting.shift();
    if (waiter === undefined) this.#items.push(item);
    else waiter.resolve(item);
  }

  // No more items: rejects the waiters.
  end(why: string): void {
    this.#end ??= new Error(why);
    for (const { reject } of this.#waiting.splice(0)) reject(this.#end);
  }

  async take(): Promise<T> {
    const item = this.#items.shift();
    if (item !== undefined) return item;
    if (this.#end !== undefined) throw this.#end;
    return await new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }
}

export type Datagram = { readonly message: Buffer; readonly port: number };

export class UdpClient implements AsyncDisposable {
  readonly port: number;
  readonly #fd: number;
  readonly #socket: UdpSocket;
  readonly #inbox = new Inbox<Datagram>();

  constructor() {
    const { fd, port } = bindUdp();
    this.#fd = fd;
    this.port = port;
    this.#socket = createSocket("udp4");
    this.#socket.on("message", (message, { port: from }) => this.#inbox.put({ message, port: from }));
    this.#socket.bind({ fd });
  }

  // Synchronously, so that several packets arrive before the program reads.
  send(message: Uint8Array, port: number): void {
    assert.ok(sendTo(this.#fd, message, sockaddr(LOOPBACK, port)) >= 0);
  }

  async receive(): Promise<Buffer> {
    return (await this.#inbox.take()).message;
  }

  async receiveFrom(): Promise<Datagram> {
    return await this.#inbox.take();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await once(this.#socket, "close");
  }
}

export class TcpClient implements AsyncDisposable {
  readonly socket: Socket;
  // "end" if the server has closed its side, "reset" if it aborted the connection.
  readonly gone: Promise<"end" | "reset">;
  readonly #inbox = new Inbox<Buffer>();
  readonly #reader = new StreamReader();

  private constructor(tcp: Socket) {
    this.socket = tcp;
    tcp.on("data", (chunk: Buffer) => this.#onData(chunk));
    this.gone = new Promise((resolve) => {
      tcp.on("end", () => resolve("end"));
      tcp.on("error", () => resolve("reset"));
      tcp.on("close", () => resolve("reset"));
    });
    void this.gone.then((how) => this.#inbox.end(`the connection is gone: ${how}`));
  }

  static async open(port: number): Promise<TcpClient> {
    const tcp = connect({ port, host: LOOPBACK, allowHalfOpen: true, noDelay: true });
    await once(tcp, "connect");
    return new TcpClient(tcp);
  }

  // All messages in one segment.
  async send(...messages: readonly Uint8Array[]): Promise<void> {
    await this.sendRaw(Buffer.concat(messages.map((message) => withLength(message))));
  }

  async sendRaw(bytes: Uint8Array): Promise<void> {
    await new Promise((resolve) => this.socket.write(bytes, resolve));
  }

  async receive(): Promise<Buffer> {
    return await this.#inbox.take();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.socket.closed) return;
    this.socket.destroy();
    await once(this.socket, "close");
  }

  #onData(chunk: Buffer): void {
    this.#reader.push(chunk);
    for (let next = this.#reader.next(); next !== undefined; next = this.#reader.next()) {
      this.#inbox.put(Buffer.from(next));
    }
  }
}
