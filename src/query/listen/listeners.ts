/**
 * Listeners: the sockets of one endpoint, a UDP and a TCP socket for each of its addresses.
 */
import { closeQuietly, duplicate } from "../../kernel/libc.ts";
import { type ConnectionOwners, TcpListener } from "./tcp.ts";
import { type PacketSource, type PacketOwners, UdpListener, type UdpParts } from "./udp.ts";

/** A bound UDP socket and a listening TCP socket at the same address. */
export interface SocketPair {
  readonly udp: number;
  readonly tcp: number;
  readonly listening: { readonly address: string };
}

interface ListenersParts {
  readonly udp: UdpParts;
  readonly packetOwners: PacketOwners;
  readonly connectionOwners: ConnectionOwners;
}

export class Listeners {
  readonly #parts: ListenersParts;
  readonly #udp: UdpListener[] = [];
  readonly #tcp: TcpListener[] = [];

  constructor(parts: ListenersParts) {
    this.#parts = parts;
  }

  /** Takes ownership of the sockets. If it cannot listen on one, it closes that one and those after it. */
  add(pairs: readonly SocketPair[]): void {
    const { udp: udpParts, packetOwners, connectionOwners } = this.#parts;
    const unused = new Set(pairs.flatMap(({ udp, tcp }) => [udp, tcp]));
    try {
      for (const { udp, tcp, listening } of pairs) {
        this.#udp.push(new UdpListener(udp, listening.address, packetOwners, udpParts));
        unused.delete(udp);
        this.#tcp.push(new TcpListener(tcp, connectionOwners));
        unused.delete(tcp);
      }
    } catch (error) {
      for (const fd of unused) closeQuietly(fd);
      throw error;
    }
  }

  /** UDP queries that found a socket's buffer full. */
  get lost(): number {
    return this.#udp.reduce((sum, { lost }) => sum + lost, 0);
  }

  /** Whether UDP queries wait to be read. */
  get areBehind(): boolean {
    return this.#udp.some(({ isBehind }) => isBehind);
  }

  /** Handles a packet that another socket has received for one of these pairs. */
  receive(pair: number, message: Buffer, source: PacketSource): void {
    this.#udp[pair]?.receive(message, source);
  }

  /**
   * Stops reading new packets and connections, which stay in the sockets; queries that have been read are still answered. Returns the
   * sockets' new descriptors; without descriptors for all, throws and pauses none.
   */
  pause(): readonly Pick<SocketPair, "udp" | "tcp">[] {
    const kept: number[] = [];
    try {
      for (const { fd } of [...this.#udp, ...this.#tcp]) kept.push(duplicate(fd));
    } catch (error) {
      for (const fd of kept) closeQuietly(fd);
      throw error;
    }
    const [udp, tcp] = [kept.slice(0, this.#udp.length), kept.slice(this.#udp.length)];
    const pausedTcp = this.#tcp.map((listener, index) => listener.pause(tcp[index] as number));
    return this.#udp.map((listener, index) => ({
      udp: listener.pause(udp[index] as number),
      tcp: pausedTcp[index] as number,
    }));
  }

  resume(): void {
    for (const listener of [...this.#udp, ...this.#tcp]) listener.resume();
  }

  close(): void {
    for (const listener of [...this.#udp, ...this.#tcp]) listener.close();
  }
}
