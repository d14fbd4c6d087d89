/**
 * Endpoint: the listeners of one namespace and the client that they serve. Attaching a container opens one, detaching
 * closes it; in between its view can be replaced, and it reports whether a probe has arrived.
 */
import type { KernelAnswerMemory } from "../../base/model/kernel-answer.ts";
import type { View } from "../../base/model/view.ts";
import type { Client } from "../client/client.ts";
import { ClientConnections } from "./client-connections.ts";
import { TcpListener } from "./tcp.ts";
import type { TcpParts } from "./tcp-connection.ts";
import { UdpListener, type UdpParts, sendersOf } from "./udp.ts";

/** A bound UDP socket and a listening TCP socket at the same address. */
export interface SocketPair {
  readonly udp: number;
  readonly tcp: number;
  readonly listening: { readonly address: string };
}

export interface EndpointParts {
  readonly udp: UdpParts;
  readonly tcp: TcpParts;
}

export class Endpoint {
  readonly #client: Client;
  readonly #parts: EndpointParts;
  readonly #udp: UdpListener[] = [];
  readonly #tcp: TcpListener[] = [];
  readonly #connections: ClientConnections;
  readonly probeTarget = {
    expect: (nonce: string): void => {
      this.#client.probeNonce = nonce;
      this.#client.probeSeen.udp = this.#client.probeSeen.tcp = false;
    },
    hasSeen: (protocol: "udp" | "tcp"): boolean => this.#client.probeSeen[protocol],
    reset: (): void => {
      this.#client.probeNonce = undefined;
    },
  };

  /** Takes ownership of the sockets and of the client. */
  constructor(pairs: readonly SocketPair[], client: Client, parts: EndpointParts) {
    this.#client = client;
    this.#parts = parts;
    this.#connections = new ClientConnections(client, parts.tcp);
    this.add(pairs);
  }

  /** Takes ownership of further sockets. */
  add(pairs: readonly SocketPair[]): void {
    const client = this.#client;
    const senders = sendersOf(client);
    const connecters = { clientNumber: client.number, of: () => this.#connections };
    for (const { udp, tcp, listening } of pairs) {
      this.#udp.push(new UdpListener(udp, listening.address, senders, this.#parts.udp));
      this.#tcp.push(new TcpListener(tcp, connecters));
    }
  }

  get counters(): Readonly<Record<string, number>> {
    this.#client.collect();
    return this.#client.counters;
  }

  get inFlight(): number {
    return this.#client.slots.taken;
  }

  get tcpClientPorts(): readonly number[] {
    return this.#connections.busyPorts;
  }

  setView(view: View): void {
    this.#client.view = view;
    this.#client.memory?.forget();
  }

  /** What the kernel answers for this namespace; undefined if the process answers everything. */
  setMemory(memory: KernelAnswerMemory | undefined): void {
    this.#client.setMemory(memory);
  }

  /**
   * Stops reading new packets and connections, which stay in the sockets; queries that have been read are still
   * answered. The kernel goes on answering: names are still followed, and end its answers when they change. Returns the
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
    this.#connections.close();
    this.#client.close();
  }
}
