/**
 * NameserverPool: every upstream server, once. A server of the host is common to all containers. A server that is
 * reached from inside a container belongs to that container alone, whatever its address. A ServerList is the servers of
 * one route; two lists have the same scope only if they have the same servers in the same order.
 */
import { LIMITS } from "../../base/limits.ts";
import { RateLimit } from "../../base/lib/rate-limit.ts";
import { serverText } from "../../base/model/server-text.ts";
import type { Route, Server } from "../../base/model/view.ts";
import type { Client } from "../client/client.ts";
import { StreamBudget } from "../client/stream-budget.ts";
import type { Disclosure } from "../tap.ts";
import { Nameserver, type OnHealth } from "./nameserver.ts";
import { ServerQueue } from "./server-queue.ts";
import type { SocketPoolParts } from "./socket-pool.ts";
import { StreamPool } from "./stream-pool.ts";
import { TlsMemory, type TlsTarget } from "./tls-connection.ts";
import { TlsTrust } from "./tls-trust.ts";

export interface ServerList {
  readonly nameservers: readonly Nameserver[];
  readonly scope: number;
  /** Docker's embedded DNS: its replies about Docker's names get the TTL of ours. */
  readonly isDocker: boolean;
  /** The only client that may use the list; undefined if all servers are the host's, and none is told about the client. */
  readonly client: Client | undefined;
  /** For each server the EDNS option that tells it about the client; undefined where no server is told. */
  readonly clientOptions: readonly (Uint8Array | undefined)[] | undefined;
  /** The client's disclosure when the list was made. */
  readonly disclosure: Disclosure | undefined;
}

export class NameserverPool {
  readonly #parts: SocketPoolParts;
  readonly #onHealth: OnHealth;
  readonly #lists = new WeakMap<Route, ServerList>();
  readonly #host = new Map<string, Nameserver>();
  readonly #own = new WeakMap<Client, ClientUpstreams>();
  readonly #scopes = new Map<string, number>();
  /** Rate limit for new connections to the host's servers, over all containers. */
  readonly #connects: RateLimit;
  /** Rate limit for new TLS connections to the host's servers; and the budget of all handshakes. */
  readonly #tlsConnects: RateLimit;
  readonly #handshakes = new StreamBudget(0);
  readonly #trust: TlsTrust;
  #scopesUsed = 0;

  /** `tlsFile`: the file of certificate authorities to trust; without it, those of the machine. */
  constructor(parts: SocketPoolParts, onHealth: OnHealth, tlsFile?: string) {
    this.#parts = parts;
    this.#onHealth = onHealth;
    this.#connects = new RateLimit(LIMITS.upstreamConnectsOfHost, parts.now);
    this.#tlsConnects = new RateLimit(LIMITS.tls.connectsOfHost, parts.now);
    this.#trust = new TlsTrust(tlsFile, parts.now);
  }

  /** Servers of the host that have been used. */
  get hostNameservers(): Iterable<Nameserver> {
    return this.#host.values();
  }

  /** Servers that have been used from inside a container. */
  nameserversOf(client: Client): Iterable<Nameserver> {
    return this.#own.get(client)?.nameservers.values() ?? [];
  }

  /** A server, if it has been used by this container or, for a server of the host, by any. */
  find(client: Client | undefined, server: Server): Nameserver | undefined {
    if (server.from === "host") return this.#host.get(serverKey(server));
    return client === undefined ? undefined : this.#own.get(client)?.nameservers.get(serverKey(server));
  }

  serverListFor(client: Client, route: Route): ServerList {
    const known = this.#lists.get(route);
    const { disclosure } = client;
    if (
      known !== undefined &&
      known.disclosure === disclosure &&
      (known.client === undefined || known.client === client)
    )
      return known;
    const clientOptions = disclosure === undefined ? undefined : clientOptionsOf(disclosure, route.servers);
    // A server that is told about the client answers for this client alone.
    const isOwn = clientOptions !== undefined || route.servers.some(({ from }) => from !== "host");
    const key = [...route.servers.map(scopeKey), ...(clientOptions ?? []).map(hexOf)].join(" ");
    const list: ServerList = {
      nameservers: route.servers.map((server) => this.#nameserver(client, server)),
      scope: isOwn ? this.#ownScope(client, key) : this.#scope(key),
      isDocker: route.servers.some(({ from }) => from === "docker"),
      client: isOwn ? client : undefined,
      clientOptions,
      disclosure,
    };
    this.#lists.set(route, list);
    return list;
  }

  /** What the container sends to a server, and what waits. */
  queueTo(client: Client, nameserver: Nameserver): ServerQueue {
    const { queues } = this.#ownOf(client);
    const known = queues.get(nameserver);
    if (known !== undefined) return known;
    const created = new ServerQueue(client.number, this.#parts.now);
    queues.set(nameserver, created);
    return created;
  }

  /** The container's TCP connections to a server. */
  streamsTo(client: Client, nameserver: Nameserver): StreamPool {
    const own = this.#ownOf(client);
    const { server } = nameserver;
    const key = serverKey(server);
    const known = own.streams.get(key);
    if (known !== undefined) return known;
    const isTls = server.tls !== undefined;
    const created = new StreamPool({
      ids: this.#parts.ids,
      shares: client.shares,
      budget: client.streamBudget,
      connects: isTls ? own.tlsConnects : own.connects,
      connectsOfHost: server.from !== "host" ? undefined : isTls ? this.#tlsConnects : this.#connects,
      dial: () => client.dial(server, "tcp"),
      tls: isTls ? () => this.#tlsTarget(client, server) : undefined,
    });
    for (const [former, pool] of formerOf(own.streams, server)) {
      own.streams.delete(former);
      pool.close();
    }
    own.streams.set(key, created);
    return created;
  }

  /** Whether replies of this scope are valid for every container that uses the same servers of the host. */
  isSharedScope(scope: number): boolean {
    return scope % 2 === 0;
  }

  /** Drops the host's servers: their addresses or their namespace have changed. */
  dropHostServers(): void {
    for (const { sockets } of this.#host.values()) sockets.retire();
    this.#host.clear();
    this.#scopes.clear();
  }

  /** Looks the server up again: the host's servers may have been dropped and created again. */
  #tlsTarget(client: Client, server: Server): TlsTarget {
    const memory = this.#nameserver(client, server).tls ?? new TlsMemory();
    return { server, trust: this.#trust, handshakes: this.#handshakes, memory };
  }

  #nameserver(client: Client, server: Server): Nameserver {
    const servers = server.from === "host" ? this.#host : this.#ownOf(client).nameservers;
    const key = serverKey(server);
    const known = servers.get(key);
    if (known !== undefined) return known;
    const created = new Nameserver(server, this.#poolPartsFor(client, server), this.#onHealth);
    for (const [former, { sockets }] of formerOf(servers, server)) {
      servers.delete(former);
      sockets.retire();
    }
    servers.set(key, created);
    return created;
  }

  /** Sockets to a container's own servers count against its share. */
  #poolPartsFor(client: Client, { from }: Server): SocketPoolParts {
    return from === "host" ? this.#parts : { ...this.#parts, share: client.shares.upstreamSockets };
  }

  #ownOf(client: Client): ClientUpstreams {
    const known = this.#own.get(client);
    if (known !== undefined) return known;
    const connects = new RateLimit(LIMITS.upstreamConnects, this.#parts.now);
    const tlsConnects = new RateLimit(LIMITS.tls.connects, this.#parts.now);
    const created: ClientUpstreams = {
      nameservers: new Map(),
      scopes: new Map(),
      streams: new Map(),
      queues: new WeakMap(),
      connects,
      tlsConnects,
    };
    this.#own.set(client, created);
    // A container may outlive this pool, which new settings replace; the callback must not keep the pool alive.
    const own = new WeakRef(created);
    client.onClose(() => {
      const { nameservers, streams } = own.deref() ?? NO_UPSTREAMS;
      for (const { sockets } of nameservers.values()) sockets.close();
      for (const pool of streams.values()) pool.close();
    });
    return created;
  }

  /** Lists of the host's servers have even numbers, and those of a container's own odd ones. */
  #scope(key: string): number {
    return scopeIn(this.#scopes, key, () => ++this.#scopesUsed * 2);
  }

  #ownScope(client: Client, key: string): number {
    return scopeIn(this.#ownOf(client).scopes, key, () => ++this.#scopesUsed * 2 + 1);
  }
}

/** What belongs to one container. */
interface ClientUpstreams {
  readonly nameservers: Map<string, Nameserver>;
  readonly scopes: Map<string, number>;
  /** The key is the server, because the host's servers may be dropped and created again. */
  readonly streams: Map<string, StreamPool>;
  readonly queues: WeakMap<Nameserver, ServerQueue>;
  readonly connects: RateLimit;
  readonly tlsConnects: RateLimit;
}

const NO_UPSTREAMS: Pick<ClientUpstreams, "nameservers" | "streams"> = { nameservers: new Map(), streams: new Map() };

function scopeIn(scopes: Map<string, number>, key: string, next: () => number): number {
  const known = scopes.get(key);
  if (known !== undefined) return known;
  const scope = next();
  scopes.set(key, scope);
  return scope;
}

/** A container that has started again is another server: it has no health yet. */
function serverKey(server: Server): string {
  const { container, isBackup } = server;
  const start = container === undefined ? "" : `${containerKey(server)}${container.startedAt} `;
  return `${start}${server.from} ${serverText(server)}${isBackup === true ? " backup" : ""}`;
}

/** Undefined if no server is told about the client. */
function clientOptionsOf(disclosure: Disclosure, servers: readonly Server[]): (Uint8Array | undefined)[] | undefined {
  const options = servers.map((server) => disclosure.optionFor(server));
  return options.some((each) => each !== undefined) ? options : undefined;
}

function hexOf(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? "" : `told ${Buffer.from(bytes).toString("hex")}`;
}

/** What a container has answered stays valid when it starts again. */
function scopeKey(server: Server): string {
  return server.container === undefined ? serverKey(server) : `${server.from} ${containerKey(server)}`;
}

/** A key that stays the same for every start and address of a container. */
function containerKey({ container, port }: Server): string {
  return `container ${container?.name} ${container?.network} ${port} `;
}

/** What was kept for former starts or addresses of the container that the server is. */
function formerOf<T>(all: ReadonlyMap<string, T>, server: Server): [string, T][] {
  if (server.container === undefined) return [];
  const prefix = containerKey(server);
  return [...all].filter(([key]) => key.startsWith(prefix) && key !== serverKey(server));
}
