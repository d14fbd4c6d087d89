/**
 * SubnetEndpoint: the listeners of an address that given blocks of addresses may query, all as one client. Rules of the kernel have checked
 * the source and the rate; the source is checked here once more, because an open resolver is used to attack others. Each source has a share
 * of the connections.
 */
import type { Socket } from "node:net";

import { type AddressKey, unmappedBytesOf, type AddressBlock, isInBlock } from "../../base/model/address.ts";
import { LIMITS } from "../../base/limits.ts";
import type { View } from "../../base/model/view.ts";
import type { Client } from "../client/client.ts";
import { ClientConnections } from "./tcp.ts";
import type { EndpointParts } from "./endpoint.ts";
import { Listeners, type SocketPair } from "./listeners.ts";

/** The first half of an IPv6 address: one machine may have all addresses of that prefix. */
const SOURCE_BYTES = 8;

export class SubnetEndpoint {
  readonly #client: Client;
  readonly #allow: readonly AddressBlock[];
  readonly #listeners: Listeners;
  readonly #connections: ClientConnections;
  /** How many connections each source has, at most as many as all together. */
  readonly #bySource = new Map<string, number>();
  readonly #refused = { source: 0, connections: 0 };

  /** Takes ownership of the sockets and of the client, also if it cannot listen on the sockets. */
  constructor(pairs: readonly SocketPair[], client: Client, allow: readonly AddressBlock[], parts: EndpointParts) {
    this.#client = client;
    this.#allow = allow;
    client.udpBytesMax = LIMITS.lanUdpBytes;
    this.#connections = new ClientConnections(client, parts.tcp);
    const packetOwners = { only: undefined, of: (source: AddressKey) => this.#clientAt(source) };
    const connectionOwners = { clientNumber: client.number, of: (socket: Socket) => this.#connectionsOf(socket) };
    this.#listeners = new Listeners({ udp: parts.udp, packetOwners, connectionOwners });
    try {
      this.#listeners.add(pairs);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Forwarded queries that wait for an answer. */
  get inFlight(): number {
    return this.#client.slots.taken;
  }

  get queries(): number {
    return this.#client.counters.queries;
  }

  /** Queries that passed the kernel's rules although they should not, and connections beyond a source's share. */
  get refused(): Readonly<Record<"source" | "connections", number>> {
    return this.#refused;
  }

  /** Queries that found a socket's buffer full. */
  get lost(): number {
    return this.#listeners.lost;
  }

  setView(view: View): void {
    this.#client.view = view;
  }

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

  #clientAt(source: AddressKey): Client | undefined {
    if (!this.#client.isClosed && this.#isAllowed(bytesOf(source))) return this.#client;
    this.#refused.source++;
    return undefined;
  }

  #isAllowed(source: Uint8Array): boolean {
    return this.#allow.some((block) => isInBlock(source, block));
  }

  #connectionsOf(socket: Socket): ClientConnections | undefined {
    const bytes = unmappedBytesOf(socket.remoteAddress ?? "");
    if (this.#client.isClosed || bytes === undefined || !this.#isAllowed(bytes)) {
      this.#refused.source++;
      return undefined;
    }
    const source = Buffer.from(bytes.subarray(0, SOURCE_BYTES)).toString("latin1");
    const count = this.#bySource.get(source) ?? 0;
    if (count >= LIMITS.lanSourceStreams) {
      this.#refused.connections++;
      return undefined;
    }
    this.#bySource.set(source, count + 1);
    socket.on("close", () => this.#leave(source));
    return this.#connections;
  }

  #leave(source: string): void {
    const count = (this.#bySource.get(source) ?? 1) - 1;
    if (count === 0) this.#bySource.delete(source);
    else this.#bySource.set(source, count);
  }
}

function bytesOf(key: AddressKey): Uint8Array {
  if (typeof key === "string") return Buffer.from(key, "latin1");
  return Uint8Array.of(key >>> 24, (key >>> 16) & 0xff, (key >>> 8) & 0xff, key & 0xff);
}
