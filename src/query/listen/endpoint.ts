/**
 * Endpoint: the listeners of one namespace and the client that they serve. Attaching a container opens one, detaching
 * closes it; in between its view can be replaced, and it reports whether a probe has arrived.
 */
import type { View } from "../../base/model/view.ts";
import type { Client } from "../client/client.ts";
import { ClientConnections } from "./tcp.ts";
import { Listeners, type SocketPair } from "./listeners.ts";
import type { TcpParts } from "./tcp-connection.ts";
import { type UdpParts, packetOwnersOf } from "./udp.ts";

export interface EndpointParts {
  readonly udp: UdpParts;
  readonly tcp: TcpParts;
}

export class Endpoint {
  readonly #client: Client;
  readonly #listeners: Listeners;
  readonly #connections: ClientConnections;
  #lostBefore = 0;
  readonly probeTarget = {
    expect: (nonce: string): void => {
      this.#client.expectProbe(nonce);
      this.#lostBefore = this.#listeners.lost;
    },
    hasSeen: (protocol: "udp" | "tcp"): boolean => this.#client.probeSeen[protocol],
    isBehind: (): boolean => this.#listeners.areBehind,
    hasLost: (): boolean => this.#listeners.lost !== this.#lostBefore,
    reset: (): void => {
      this.#client.probeNonce = undefined;
    },
  };

  /** Takes ownership of the client. */
  constructor(client: Client, parts: EndpointParts) {
    this.#client = client;
    this.#connections = new ClientConnections(client, parts.tcp);
    const connectionOwners = { clientNumber: client.number, of: () => this.#connections };
    this.#listeners = new Listeners({ udp: parts.udp, packetOwners: packetOwnersOf(client), connectionOwners });
  }

  add(pairs: readonly SocketPair[]): void {
    this.#listeners.add(pairs);
  }

  get counters(): Readonly<Record<string, number>> {
    this.#client.collect();
    return this.#client.counters;
  }

  get clientNumber(): number {
    return this.#client.number;
  }

  get inFlight(): number {
    return this.#client.slots.taken;
  }

  get tcpClientPorts(): readonly number[] {
    return this.#connections.busyPorts;
  }

  setView(view: View): void {
    this.#client.view = view;
    this.#client.repeater?.forget();
  }

  /** Pauses the listeners. The kernel goes on answering: this process still follows names, and ends such answers when they change. */
  pause(): ReturnType<Listeners["pause"]> {
    return this.#listeners.pause();
  }

  resume(): void {
    this.#listeners.resume();
  }

  close(): void {
    this.#listeners.close();
    this.#connections.close();
    this.#client.close();
  }
}
