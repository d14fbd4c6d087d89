/**
 * MetricsListener: the TCP socket for metrics and health checks, which the control socket serves as well. On loopback, requests for
 * names of others are refused; an operator who listens on another address serves the network, which may know it by any name.
 */
import { type IncomingHttpHeaders, createServer } from "node:http";
import { type Server, type Socket, createServer as createTcpServer, isIPv6 } from "node:net";

import { LIMITS } from "../../base/limits.ts";
import { isLoopback } from "../../base/model/address.ts";
import { METRICS_OFF, type MetricsPolicy } from "../../base/model/metrics-policy.ts";
import { Fault, codeOf, reasonOf } from "../../base/lib/fault.ts";
import type { Log } from "../../base/log/log.ts";
import { ConnectionLimit } from "./connection-limit.ts";
import { FirstRequest } from "./first-request.ts";
import { isForThisMachine } from "./host-header.ts";
import { type Routes, serveRoutes } from "./http.ts";

interface Serving {
  readonly server: Server;
  readonly connections: ConnectionLimit;
}

export class MetricsListener {
  readonly #routes: Routes;
  readonly #log: Log;
  #serving: Serving | undefined;
  #address = METRICS_OFF;

  constructor(routes: Routes, log: Log) {
    this.#routes = routes;
    this.#log = log;
  }

  /**
   * Moves to a new address. If that fails, an explicitly configured address throws a Fault and the old one stays in use. The
   * default address only logs a warning, because another instance may use it.
   */
  async listen({ address, isExplicit }: MetricsPolicy): Promise<void> {
    if (address === this.#address) return;
    let serving: Serving | undefined;
    try {
      serving = address === METRICS_OFF ? undefined : await serve(address, this.#routes);
    } catch (error) {
      const fault = listenFault(address, error);
      if (isExplicit) throw fault;
      const reason = reasonOf(fault);
      this.#log.warn(
        { reason, remedy: fault.remedy },
        "metrics address is in use; metrics are available only on the control socket",
      );
    }
    this.close();
    this.#serving = serving;
    this.#address = serving === undefined ? METRICS_OFF : address;
    if (serving !== undefined) this.#log.debug({ address }, "serving metrics");
  }

  /** The address it listens on, with the port that the kernel chose for port 0. */
  get address(): string | undefined {
    const bound = this.#serving?.server.address();
    if (typeof bound !== "object" || bound === null) return undefined;
    return `${isIPv6(bound.address) ? `[${bound.address}]` : bound.address}:${bound.port}`;
  }

  close(): void {
    this.#serving?.server.close();
    this.#serving?.connections.close();
    this.#serving = undefined;
    this.#address = METRICS_OFF;
  }
}

async function serve(address: string, routes: Routes): Promise<Serving> {
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, colon).replaceAll(/[[\]]/g, "");
  // Any process can connect.
  const http = serveRoutes(createServer(), routes, isLoopback(host) ? refusal : undefined);
  // Node would wait for another request, and knows no timeout of a stream that is no socket.
  http.prependListener("request", (_, response) => response.setHeader("Connection", "close"));
  const connections = new ConnectionLimit(http, LIMITS.pageConnections);
  const accept = (socket: Socket): void => void http.emit("connection", new FirstRequest(socket));
  const server = createTcpServer({ allowHalfOpen: true }, accept).unref();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port: Number(address.slice(colon + 1)), ipv6Only: isIPv6(host) }, resolve);
  });
  // An error affects only its connection, never name resolution.
  server.on("error", () => undefined);
  return { server, connections };
}

function refusal({ host }: IncomingHttpHeaders): string | undefined {
  if (isForThisMachine(host)) return undefined;
  return "These pages are for this machine: use its address or localhost. To serve other names, set --metrics-addr to an address of the network";
}

function listenFault(address: string, cause: unknown): Fault {
  const reason = new Map([
    ["EADDRINUSE", "the address is already in use"],
    ["EADDRNOTAVAIL", "no interface of this machine has this address"],
    ["EACCES", "a port below 1024 requires CAP_NET_BIND_SERVICE"],
  ]).get(codeOf(cause) ?? "");
  return new Fault("METRICS_ADDR", `Cannot serve metrics at ${address}: ${reason ?? reasonOf(cause)}`, {
    remedy: "Set another address with --metrics-addr, or off.",
    isFinal: true,
  });
}
