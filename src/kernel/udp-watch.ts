/**
 * UdpWatch: a UDP socket that was made through libc, watched by the event loop. Node reads one packet from a socket that
 * is readable, and libuv reads on in the same round while more come, up to 32 times, with an object and a call for each.
 * Whoever takes what waits by itself lets the watch rest until the next round: that is cheaper for this socket and keeps
 * nobody else waiting.
 *
 * Node has no word for resting but its handle's own. Where a Node hides that, `isResting` still says that this round has
 * had its share, and what libuv brings meanwhile costs more and nothing else.
 */
import { type RemoteInfo, type Socket, createSocket } from "node:dgram";

import { forbidAddressReuse } from "./libc.ts";

interface Handle {
  recvStart(): unknown;
  recvStop(): unknown;
}

export class UdpWatch {
  readonly #socket: Socket;
  readonly #handle: Handle | undefined;
  readonly #resume = (): void => this.#endRest();
  #isResting = false;
  #isClosed = false;

  /** Takes over the socket. */
  constructor(
    fd: number,
    family: 4 | 6,
    onPacket: (message: Buffer, sender: RemoteInfo) => void,
    onError: (error: Error) => void,
  ) {
    this.#socket = createSocket(family === 4 ? "udp4" : "udp6");
    this.#socket.on("message", onPacket);
    this.#socket.on("error", onError);
    this.#socket.bind({ fd });
    this.#handle = handleOf(this.#socket);
    // libuv allows others to share the address, and then the newest of them gets the packets.
    forbidAddressReuse(fd);
  }

  /** Whether this round of the event loop has had its share of this socket. */
  get isResting(): boolean {
    return this.#isResting;
  }

  /** Has libuv leave what comes in the socket until the next round. */
  rest(): void {
    if (this.#isResting || this.#isClosed) return;
    this.#isResting = true;
    this.#handle?.recvStop();
    setImmediate(this.#resume);
  }

  /** Being open is no reason for the process to live. */
  unref(): void {
    this.#socket.unref();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close();
  }

  #endRest(): void {
    this.#isResting = false;
    if (!this.#isClosed) this.#handle?.recvStart();
  }
}

function handleOf(socket: Socket): Handle | undefined {
  const symbol = Object.getOwnPropertySymbols(socket).find(({ description }) => description === "state symbol");
  if (symbol === undefined) return undefined;
  const { handle } =
    (socket as unknown as Record<symbol, { readonly handle?: Partial<Handle> } | undefined>)[symbol] ?? {};
  return typeof handle?.recvStop === "function" && typeof handle.recvStart === "function"
    ? (handle as Handle)
    : undefined;
}
