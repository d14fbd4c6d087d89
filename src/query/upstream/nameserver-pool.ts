/**
 * Fleet: every server there is to ask, each once. A server of the host's is the same for all containers; one that is asked
 * from inside a container is that container's alone, whatever its address. A lane is a list of servers as one container
 * takes it, and its scope a number that two lanes share only if they are the same servers in the same order.
 */
import { LIMITS } from "../../base/limits.ts";
import { RateLimit } from "../../base/lib/rate-limit.ts";
import { serverText } from "../../base/model/server-text.ts";
import type { Route, Server } from "../../base/model/view.ts";
import type { Client } from "../client/client.ts";
import { Nameserver, type OnHealth } from "./nameserver.ts";
import type { SocketPoolParts } from "./socket-pool.ts";
import { StreamPool } from "./stream-pool.ts";

export interface ServerList {
  readonly nameservers: readonly Nameserver[];
  readonly scope: number;
  /** Docker's own resolver behind us: what it says of its own names holds for as long as ours do. */
  readonly isDocker: boolean;
  /** The only one who may take it; undefined where all servers are the host's. */
  readonly client: Client | undefined;
}

export class NameserverPool {
  readonly #parts: SocketPoolParts;
  readonly #onHealth: OnHealth;
  readonly #lanes = new WeakMap<Route, ServerList>();
  readonly #host = new Map<string, Nameserver>();
  readonly #own = new WeakMap<Client, ClientUpstreams>();
  readonly #scopes = new Map<string, number>();
  /** New connections to the host's servers, of all containers. */
  readonly #connects: RateLimit;
  #scopesGiven = 0;

  constructor(parts: SocketPoolParts, onHealth: OnHealth) {
    this.#parts = parts;
    this.#onHealth = onHealth;
    this.#connects = new RateLimit(LIMITS.upstreamConnectsOfHost, parts.now);
  }

  /** Servers of the host's that have been asked. */
  get hostNameservers(): Iterable<Nameserver> {
    return this.#host.values();
  }

  /** A server, where it has been asked for this container or, if it is the host's, for any. */
  find(client: Client | undefined, server: Server): Nameserver | undefined {
    if (server.from === "host") return this.#host.get(serverKey(server));
    return client === undefined ? undefined : this.#own.get(client)?.nameservers.get(serverKey(server));
  }

  serverListFor(client: Client, route: Route): ServerList {
    const known = this.#lanes.get(route);
    if (known !== undefined && (known.client === undefined || known.client === client)) return known;
    const isOwn = route.servers.some(({ from }) => from !== "host");
    const key = route.servers.map(serverKey).join(" ");
    const lane: ServerList = {
      nameservers: route.servers.map((server) => this.#nameserver(client, server)),
      scope: isOwn ? this.#ownScope(client, key) : this.#scope(key),
      isDocker: route.servers.some(({ from }) => from === "docker"),
      client: isOwn ? client : undefined,
    };
    this.#lanes.set(route, lane);
    return lane;
  }

  /** The TCP connections that a container has to a server. */
  streamsTo(client: Client, nameserver: Nameserver): StreamPool {
    const own = this.#ownOf(client);
    const { server } = nameserver;
    const key = serverKey(server);
    const known = own.streams.get(key);
    if (known !== undefined) return known;
    const made = new StreamPool({
      ids: this.#parts.ids,
      shares: client.shares,
      connects: own.connects,
      connectsOfHost: server.from === "host" ? this.#connects : undefined,
      dial: () => client.dial(server, "tcp"),
    });
    own.streams.set(key, made);
    return made;
  }

  /** Whether replies of this scope are everybody's who asks the same servers of the host's. */
  isSharedScope(scope: number): boolean {
    return scope % 2 === 0;
  }

  /** The host's servers are other ones from now on, or in another place. */
  dropHostServers(): void {
    for (const { sockets } of this.#host.values()) sockets.retire();
    this.#host.clear();
    this.#scopes.clear();
  }

  #nameserver(client: Client, server: Server): Nameserver {
    const servers = server.from === "host" ? this.#host : this.#ownOf(client).nameservers;
    const key = serverKey(server);
    const known = servers.get(key);
    if (known !== undefined) return known;
    const made = new Nameserver(server, this.#poolPartsFor(client, server), this.#onHealth);
    servers.set(key, made);
    return made;
  }

  /** Sockets to servers of a container's own are of its share. */
  #poolPartsFor(client: Client, { from }: Server): SocketPoolParts {
    return from === "host" ? this.#parts : { ...this.#parts, share: client.shares.upstreamSockets };
  }

  #ownOf(client: Client): ClientUpstreams {
    const known = this.#own.get(client);
    if (known !== undefined) return known;
    const connects = new RateLimit(LIMITS.upstreamConnects, this.#parts.now);
    const made: ClientUpstreams = { nameservers: new Map(), scopes: new Map(), streams: new Map(), connects };
    this.#own.set(client, made);
    // A container may outlive this fleet, which other settings have replaced, and is not to keep it alive.
    const own = new WeakRef(made);
    client.atClose(() => {
      const { nameservers, streams } = own.deref() ?? NO_UPSTREAMS;
      for (const { sockets } of nameservers.values()) sockets.close();
      for (const pool of streams.values()) pool.close();
    });
    return made;
  }

  /** Even numbers for lists of the host's servers, odd ones for a container's own. */
  #scope(key: string): number {
    return scopeIn(this.#scopes, key, () => ++this.#scopesGiven * 2);
  }

  #ownScope(client: Client, key: string): number {
    return scopeIn(this.#ownOf(client).scopes, key, () => ++this.#scopesGiven * 2 + 1);
  }
}

/** What one container has to itself. */
interface ClientUpstreams {
  readonly nameservers: Map<string, Nameserver>;
  readonly scopes: Map<string, number>;
  /** By server, as the host's may be forgotten and known anew. */
  readonly streams: Map<string, StreamPool>;
  readonly connects: RateLimit;
}

const NO_UPSTREAMS: Pick<ClientUpstreams, "nameservers" | "streams"> = { nameservers: new Map(), streams: new Map() };

function scopeIn(scopes: Map<string, number>, key: string, give: () => number): number {
  const known = scopes.get(key);
  if (known !== undefined) return known;
  const given = give();
  scopes.set(key, given);
  return given;
}

function serverKey(server: Server): string {
  return `${server.from} ${serverText(server)}${server.isBackup === true ? " backup" : ""}`;
}
