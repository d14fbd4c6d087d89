/**
 * Endpoint: the listeners of one namespace and the client they serve. Whoever attaches opens one and closes it; in
 * between it exchanges what the namespace may know, and tells whether a probe has arrived.
 */
import type { View } from "../../base/model/view.ts";
import { Client, type Dial } from "../client/client.ts";
import { type SlotLimit, Slots } from "../client/slots.ts";
import type { QueryHistories } from "../history/query-histories.ts";
import type { SharePools } from "../client/shares.ts";
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
  readonly slots?: SlotLimit;
  readonly histories: QueryHistories;
  readonly shares: SharePools;
}

/** Who asks there, what it may know, and how servers are reached from there. */
interface EndpointClient {
  readonly containerId: string;
  readonly view: View;
  readonly dial: Dial;
}

export class Endpoint {
  readonly #client: Client;
  readonly #parts: EndpointParts;
  readonly #udp: UdpListener[] = [];
  readonly #tcp: TcpListener[] = [];
  readonly probeTarget = {
    expect: (nonce: string): void => {
      this.#client.nonce = nonce;
      this.#client.seenNonce.udp = this.#client.seenNonce.tcp = false;
    },
    hasSeen: (protocol: "udp" | "tcp"): boolean => this.#client.seenNonce[protocol],
    reset: (): void => {
      this.#client.nonce = undefined;
    },
  };

  /** Takes over the sockets. */
  constructor(pairs: readonly SocketPair[], { containerId, view, dial }: EndpointClient, parts: EndpointParts) {
    this.#parts = parts;
    const { slots, histories, shares } = parts;
    const history = histories.open(containerId);
    this.#client = new Client(view, dial, new Slots(slots), history, shares.open());
    this.#client.atClose(() => histories.close(history));
    this.add(pairs);
  }

  /** Takes over further sockets. */
  add(pairs: readonly SocketPair[]): void {
    const { udp: udpParts, tcp: tcpParts } = this.#parts;
    for (const { udp, tcp, listening } of pairs) {
      this.#udp.push(new UdpListener(udp, listening.address, this.#client, udpParts));
      this.#tcp.push(new TcpListener(tcp, this.#client, tcpParts));
    }
  }

  get counters(): Readonly<Record<string, number>> {
    return this.#client.counters;
  }

  /** Who asks here, for whoever asks in its name. */
  get client(): Client {
    return this.#client;
  }

  get inFlight(): number {
    return this.#client.slots.taken;
  }

  get tcpClientPorts(): readonly number[] {
    return this.#tcp.flatMap((listener) => listener.busyPorts);
  }

  setView(view: View): void {
    this.#client.view = view;
  }

  /** Leaves what comes in the sockets; what has come is still answered. Returns their numbers, which are others now. */
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
