/**
 * SharedEndpoint: the listeners of an address that many containers query. The source address says which container it is, because the kernel
 * lets that address pass from that container's link only. A query gets the client that its container has, or, if the container is not
 * served otherwise, one that is opened with its first query.
 */
import { type Socket, isIPv6 } from "node:net";
import { type AddressKey, addressBytes, addressKey, unmappedBytesOf } from "../../base/model/address.ts";
import type { View } from "../../base/model/view.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import type { Client } from "../client/client.ts";
import { ClientConnections } from "./tcp.ts";
import type { EndpointParts } from "./endpoint.ts";
import { Listeners, type SocketPair } from "./listeners.ts";
import { guard } from "../../base/lib/guard.ts";
import { LIMITS } from "../../base/limits.ts";
import { UdpWatch } from "../../kernel/udp-watch.ts";
import type { PacketSource } from "./udp.ts";

interface SharedEndpointParts extends EndpointParts {
  /** The client that a container has now. */
  readonly clientOf: (containerId: string) => Client | undefined;
  /** Opens a client for a container that has none. */
  readonly openClient: (containerId: string, view: View) => Client;
  /** Undefined for a container that gets no answers. */
  readonly viewOf: (containerId: string) => View | undefined;
  /** Whether the client stays while the container has no address. */
  readonly isLasting: (containerId: string) => boolean;
}

export class SharedEndpoint {
  readonly #parts: SharedEndpointParts;
  readonly #listeners: Listeners;
  readonly #early: EarlyQueries;
  #containers: ReadonlyMap<AddressKey, string> = new Map();
  /** The clients that were opened here. */
  readonly #opened = new Map<string, Client>();
  readonly #connections = new Map<Client, ClientConnections>();
  #queries = 0;
  #refused = 0;
  #isClosed = false;

  /** Takes ownership of the sockets, also if it cannot listen on them. */
  constructor(pairs: readonly SocketPair[], waiting: readonly EarlyQuery[], parts: SharedEndpointParts) {
    this.#parts = parts;
    const of = (source: AddressKey): Client | undefined => this.#counted(this.#clientAt(source));
    const packetOwners = { only: undefined, of };
    const connectionOwners = { clientNumber: 0, of: (socket: Socket) => this.#connectionsOf(socket) };
    this.#listeners = new Listeners({ udp: parts.udp, packetOwners, connectionOwners });
    this.#early = new EarlyQueries({
      isKnown: (address) => this.#containers.has(keyOf(address)),
      deliver: (message, source) => {
        const at = pairs.findIndex(({ listening }) => isIPv6(listening.address) === isIPv6(source.address));
        if (at === -1 || this.#clientAt(keyOf(source.address)) === undefined) return false;
        this.#listeners.receive(at, message, source);
        return true;
      },
    });
    try {
      this.#early.add(waiting);
    } catch (error) {
      for (const fd of pairs.flatMap(({ udp, tcp }) => [udp, tcp])) closeQuietly(fd);
      throw error;
    }
    try {
      this.#listeners.add(pairs);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Forwarded queries of these containers that wait for an answer, also of clients that are served elsewhere, too. */
  get inFlight(): number {
    let count = 0;
    for (const id of new Set([...this.#containers.values(), ...this.#opened.keys()]))
      count += (this.#opened.get(id) ?? this.#parts.clientOf(id))?.slots.taken ?? 0;
    return count;
  }

  /** UDP queries, and TCP connections, of containers. */
  get queries(): number {
    return this.#queries;
  }

  /** Queries and connections from an address that no longer belongs to a container. */
  get refused(): number {
    return this.#refused;
  }

  /** UDP queries that found a socket's buffer full. */
  get lost(): number {
    return this.#listeners.lost;
  }

  /** Sets the containers by their addresses. Queries from other addresses get no reply. */
  setContainers(containers: ReadonlyMap<string, string>): void {
    const byKey = new Map<AddressKey, string>();
    for (const [address, containerId] of containers) {
      const bytes = addressBytes(address);
      if (bytes !== undefined) byKey.set(addressKey(bytes), containerId);
    }
    this.#containers = byKey;
    const known = new Set(byKey.values());
    for (const id of this.#opened.keys()) if (!known.has(id) && !this.#parts.isLasting(id)) this.#forget(id);
    this.#early.release();
  }

  /** Applies that a container's view has changed, or that it no longer gets answers. */
  update(containerId: string): void {
    this.#early.release();
    const client = this.#opened.get(containerId);
    if (client === undefined) {
      if (this.#parts.isLasting(containerId) && !this.#isClosed) this.#open(containerId);
      return;
    }
    const view = this.#parts.clientOf(containerId) === client ? this.#parts.viewOf(containerId) : undefined;
    if (view === undefined) this.#forget(containerId);
    else client.view = view;
  }

  pause(): ReturnType<Listeners["pause"]> {
    this.#early.isPaused = true;
    return this.#listeners.pause();
  }

  resume(): void {
    this.#early.isPaused = false;
    this.#listeners.resume();
  }

  close(): void {
    this.#isClosed = true;
    this.#early.close();
    this.#listeners.close();
    for (const connections of this.#connections.values()) connections.close();
    this.#connections.clear();
    for (const id of [...this.#opened.keys()]) this.#forget(id);
  }

  #counted(client: Client | undefined): Client | undefined {
    if (client === undefined) this.#refused++;
    else this.#queries++;
    return client;
  }

  #clientAt(source: AddressKey): Client | undefined {
    const containerId = this.#containers.get(source);
    if (containerId === undefined || this.#isClosed) return undefined;
    return this.#parts.clientOf(containerId) ?? this.#open(containerId);
  }

  #open(containerId: string): Client | undefined {
    const view = this.#parts.viewOf(containerId);
    if (view === undefined) return undefined;
    // A client that was opened here before is out of date if the container had one of its own since.
    this.#forget(containerId);
    const client = this.#parts.openClient(containerId, view);
    this.#opened.set(containerId, client);
    return client;
  }

  #forget(containerId: string): void {
    const client = this.#opened.get(containerId);
    this.#opened.delete(containerId);
    client?.close();
  }

  #connectionsOf(socket: Socket): ClientConnections | undefined {
    const source = unmappedBytesOf(socket.remoteAddress ?? "");
    const client = this.#counted(source === undefined ? undefined : this.#clientAt(addressKey(source)));
    if (client === undefined) return undefined;
    const known = this.#connections.get(client);
    if (known !== undefined) return known;
    const connections = new ClientConnections(client, this.#parts.tcp);
    this.#connections.set(client, connections);
    client.onClose(() => {
      this.#connections.delete(client);
      connections.close();
    });
    return connections;
  }
}

/** The key of an address; a link-local address has a zone, and belongs to no container. */
function keyOf(address: string): AddressKey {
  return addressKey(addressBytes(address) ?? new Uint8Array(16));
}

/** A bound UDP socket. */
interface EarlyQuery {
  readonly udp: number;
  readonly listening: { readonly address: string };
}

interface EarlyQueriesParts {
  /** Whether the address is a container's. */
  readonly isKnown: (address: string) => boolean;
  /** Answers a query; returns whether its source is a container. */
  readonly deliver: (message: Buffer, source: PacketSource) => boolean;
}

interface Waiting {
  readonly message: Buffer;
  readonly source: PacketSource;
  readonly untilMs: number;
}

/**
 * Holds the first queries of containers that have just started. They come by links of no known container, some milliseconds before Docker
 * has said whose the links are; without this they would be lost, and a C library asks again only after seconds. A query is answered when
 * its address becomes a container's; the reply goes to that address, whoever sent the query.
 */
class EarlyQueries {
  readonly #parts: EarlyQueriesParts;
  readonly #watches: UdpWatch[] = [];
  #waiting: Waiting[] = [];
  /** Set while another process reads the queries. */
  isPaused = false;

  constructor(parts: EarlyQueriesParts) {
    this.#parts = parts;
  }

  /** Takes ownership of the sockets. If it cannot read one of them, closes all, and throws. */
  add(sockets: readonly EarlyQuery[]): void {
    const unused = new Set(sockets.map(({ udp }) => udp));
    const onMessage = (message: Buffer, source: PacketSource): void => this.#keep(message, source);
    const onError = (error: Error): void => guard.report(error, "udp");
    try {
      for (const { udp, listening } of sockets) {
        this.#watches.push(new UdpWatch(udp, isIPv6(listening.address) ? 6 : 4, onMessage, onError));
        unused.delete(udp);
      }
    } catch (error) {
      for (const fd of unused) closeQuietly(fd);
      this.close();
      throw error;
    }
  }

  /** Answers queries that can be answered, after addresses or views have changed. */
  release(): void {
    if (this.#waiting.length === 0 || this.isPaused) return;
    const nowMs = performance.now();
    this.#waiting = this.#waiting.filter(({ message, source, untilMs }) => {
      return untilMs > nowMs && !this.#parts.deliver(message, source);
    });
  }

  close(): void {
    for (const watch of this.#watches) watch.close();
    this.#waiting = [];
  }

  /** Holds a query, unless its address is already known: then it came by a link that is not that container's. */
  #keep(message: Buffer, source: PacketSource): void {
    if (this.isPaused || message.length > LIMITS.udpQueryBytes || this.#parts.isKnown(source.address)) return;
    const nowMs = performance.now();
    this.#waiting = this.#waiting.filter(({ untilMs }) => untilMs > nowMs);
    if (this.#waiting.length >= LIMITS.listenerWaiting) return;
    this.#waiting.push({ message, source, untilMs: nowMs + LIMITS.listenerWaitingMs });
  }
}
