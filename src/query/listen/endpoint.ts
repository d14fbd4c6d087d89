/**
 * Endpoint: the listeners of one namespace and the client that they serve. Attaching a container opens one, detaching
 * closes it; in between its view can be replaced, and it reports whether a probe has arrived.
 */
import type { KernelAnswerMemory } from "../../base/model/kernel-answer.ts";
import type { View } from "../../base/model/view.ts";
import type { Client } from "../client/client.ts";
import { TcpListener } from "./tcp.ts";
import type { TcpParts } from "./tcp-connection.ts";
import { UdpListener, type UdpParts } from "./udp.ts";

/** A bound UDP socket and a listening TCP socket at the same address. */
export interface SocketPair {
  readonly udp: number;
  readonly tcp: number;
  readonly listening: { readonly address: string };
}

interface EndpointParts {
  readonly udp: UdpParts;
  readonly tcp: TcpParts;
}

export class Endpoint {
  readonly #client: Client;
  readonly #parts: EndpointParts;
  readonly #udp: UdpListener[] = [];
  readonly #tcp: TcpListener[] = [];
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
    this.add(pairs);
  }

  /** Takes ownership of further sockets. */
  add(pairs: readonly SocketPair[]): void {
    const { udp: udpParts, tcp: tcpParts } = this.#parts;
    for (const { udp, tcp, listening } of pairs) {
      this.#udp.push(new UdpListener(udp, listening.address, this.#client, udpParts));
      this.#tcp.push(new TcpListener(tcp, this.#client, tcpParts));
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
    return this.#tcp.flatMap((listener) => listener.busyPorts);
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
    this.#client.close();
  }
}
