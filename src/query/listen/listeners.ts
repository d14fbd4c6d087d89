/**
 * Listeners: the sockets of one endpoint, a UDP and a TCP socket for each of its addresses.
 */
import { type Connecters, TcpListener } from "./tcp.ts";
import { type PacketSource, type Senders, UdpListener, type UdpParts } from "./udp.ts";

/** A bound UDP socket and a listening TCP socket at the same address. */
export interface SocketPair {
  readonly udp: number;
  readonly tcp: number;
  readonly listening: { readonly address: string };
}

export interface ListenersParts {
  readonly udp: UdpParts;
  readonly senders: Senders;
  readonly connecters: Connecters;
}

export class Listeners {
  readonly #parts: ListenersParts;
  readonly #udp: UdpListener[] = [];
  readonly #tcp: TcpListener[] = [];

  /** Takes ownership of the sockets. */
  constructor(pairs: readonly SocketPair[], parts: ListenersParts) {
    this.#parts = parts;
    this.add(pairs);
  }

  /** Takes ownership of further sockets. */
  add(pairs: readonly SocketPair[]): void {
    const { udp: udpParts, senders, connecters } = this.#parts;
    for (const { udp, tcp, listening } of pairs) {
      this.#udp.push(new UdpListener(udp, listening.address, senders, udpParts));
      this.#tcp.push(new TcpListener(tcp, connecters));
    }
  }

  /** UDP queries that found a socket's buffer full. */
  get lost(): number {
    return this.#udp.reduce((sum, { lost }) => sum + lost, 0);
  }

  /** A packet that another socket has received for one of these pairs. */
  receive(pair: number, message: Buffer, source: PacketSource): void {
    this.#udp[pair]?.receive(message, source);
  }

  /**
   * Stops reading new packets and connections, which stay in the sockets; queries that have been read are still answered. Returns the
   * sockets' new descriptors.
   */
  pause(): readonly Pick<SocketPair, "udp" | "tcp">[] {
    const tcp = this.#tcp.map((listener) => listener.pause());
    return this.#udp.map((listener, index) => ({ udp: listener.pause(), tcp: tcp[index] as number }));
  }

  resume(): void {
    for (const listener of [...this.#udp, ...this.#tcp]) listener.resume();
  }

  close(): void {
    for (const listener of [...this.#udp, ...this.#tcp]) listener.close();
  }
}
