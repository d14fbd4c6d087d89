/**
 * PageListener: the TCP socket where the pages are served. The control socket has them, too.
 */
import { type Server, createServer } from "node:http";
import { isIPv6 } from "node:net";

import { LIMITS } from "../base/limits.ts";
import { METRICS_OFF, type MetricsPolicy } from "../base/model/metrics-policy.ts";
import { Fault, codeOf, reasonOf } from "../base/lib/fault.ts";
import type { Log } from "../base/log/log.ts";
import { ConnectionLimit } from "./connection-limit.ts";
import { type Routes, serveRoutes } from "./http.ts";

export class MetricsListener {
  readonly #routes: Routes;
  readonly #log: Log;
  #server: Server | undefined;
  #address = METRICS_OFF;

  constructor(routes: Routes, log: Log) {
    this.#routes = routes;
    this.#log = log;
  }

  /**
   * Listens there, and no longer where it did before. Throws a Fault where somebody asked for an address that cannot be
   * had, and stays where it was; the usual one is given up with a warning, because another instance may have it.
   */
  async listen({ address, isExplicit: isAsked }: MetricsPolicy): Promise<void> {
    if (address === this.#address) return;
    let server: Server | undefined;
    try {
      server = address === METRICS_OFF ? undefined : await openServer(address, this.#routes);
    } catch (error) {
      const fault = listenFault(address, error);
      if (isAsked) throw fault;
      const reason = reasonOf(fault);
      this.#log.warn({ reason, remedy: fault.remedy }, "metrics are at the control socket alone");
    }
    this.close();
    this.#server = server;
    this.#address = server === undefined ? METRICS_OFF : address;
    if (server !== undefined) this.#log.debug({ address }, "serving metrics");
  }

  /** Where it listens, with the port that the kernel chose where that was left to it. */
  get address(): string | undefined {
    const bound = this.#server?.address();
    if (typeof bound !== "object" || bound === null) return undefined;
    return `${isIPv6(bound.address) ? `[${bound.address}]` : bound.address}:${bound.port}`;
  }

  close(): void {
    this.#server?.close();
    this.#server?.closeAllConnections();
    this.#server = undefined;
    this.#address = METRICS_OFF;
  }
}

async function openServer(address: string, routes: Routes): Promise<Server> {
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, colon).replaceAll(/[[\]]/g, "");
  const server = serveRoutes(createServer(), routes);
  // Anybody may ask here. Who sends a thousand questions at once is not to have a thousand answers kept for it.
  server.maxRequestsPerSocket = 1;
  void new ConnectionLimit(server, LIMITS.pageConnections);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port: Number(address.slice(colon + 1)), ipv6Only: isIPv6(host) }, resolve);
  });
  // What goes wrong with a connection is that connection's; a server has no say in names.
  server.on("error", () => undefined);
  return server;
}

function listenFault(address: string, cause: unknown): Fault {
  const why = new Map([
    ["EADDRINUSE", "somebody else listens there"],
    ["EADDRNOTAVAIL", "no interface of this machine has that address"],
    ["EACCES", "a port below 1024 takes CAP_NET_BIND_SERVICE"],
  ]).get(codeOf(cause) ?? "");
  return new Fault("METRICS_ADDR", `Metrics cannot be served at ${address}: ${why ?? reasonOf(cause)}`, {
    remedy: "Name another address with --metrics-addr, or off.",
    isFinal: true,
  });
}
