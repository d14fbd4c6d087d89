/**
 * MetricsListener: the TCP socket for metrics and health checks, which the control socket serves as well. On loopback, requests for
 * names of others are refused; an operator who listens on another address serves the network, which may know it by any name.
 */
import { type IncomingHttpHeaders, createServer } from "node:http";
import { type Server, type Socket, createServer as createTcpServer, isIPv6, isIPv4 } from "node:net";
import { Duplex } from "node:stream";

import { LIMITS } from "../../base/limits.ts";
import { isLoopback } from "../../base/model/address.ts";
import { METRICS_OFF, type MetricsPolicy } from "../../base/model/metrics-policy.ts";
import { Fault, codeOf, reasonOf } from "../../base/lib/fault.ts";
import type { Log } from "../../base/log/log.ts";
import { type Routes, serveRoutes, ConnectionLimit } from "./http.ts";

/** An address, or a name, before a port. */
const HOST = /^(?:\[(.+)\]|([^:]+))(?::\d{1,5})?$/;

/** More than any browser sends to us. */
const HEAD_BYTES_MAX = 8 * 1024;
const HEAD_END = /\n\r?\n/;

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
      serving = address === METRICS_OFF ? undefined : await this.#serve(address);
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

  /** A port of all addresses cannot be open beside that of one: then the old one goes first, and comes back where that was in vain. */
  async #serve(address: string): Promise<Serving> {
    try {
      return await serve(address, this.#routes);
    } catch (error) {
      const [before, bound] = [this.#address, this.address];
      if (codeOf(error) !== "EADDRINUSE" || bound === undefined || portOf(bound) !== portOf(address)) throw error;
      this.close();
      try {
        return await serve(address, this.#routes);
      } catch (fault) {
        this.#serving = await serve(bound, this.#routes);
        this.#address = before;
        throw fault;
      }
    }
  }
}

function portOf(address: string): string {
  return address.slice(address.lastIndexOf(":") + 1);
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

/**
 * A connection of which only the first request reaches the HTTP server, without its body. Node reads up to 64 KB
 * at once, and parses and refuses everything in it before anything else runs: thousands of requests in one step.
 */
class FirstRequest extends Duplex {
  readonly #socket: Socket;
  /** What has come of it; undefined once it has been passed on. */
  #head: string | undefined = "";

  /** Takes over the connection. */
  constructor(socket: Socket) {
    super();
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("end", () => this.push(null));
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy());
  }

  override _read(): void {
    // What comes is passed on at once: it is little.
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.destroySoon();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  #take(chunk: Buffer): void {
    if (this.#head === undefined) return;
    const head = this.#head + chunk.toString("latin1", 0, HEAD_BYTES_MAX);
    const end = HEAD_END.exec(head);
    if (end !== null) {
      this.#head = undefined;
      this.push(Buffer.from(head.slice(0, end.index + end[0].length), "latin1"));
    } else if (head.length >= HEAD_BYTES_MAX) this.destroy();
    else this.#head = head;
  }
}

/**
 * Whom a request on loopback is for. A page in a browser can reach every port of the machine by a name that its
 * author points to 127.0.0.1 (DNS rebinding), and reads what is answered. Nobody can do that with an address or `localhost`.
 *
 * Clients without the header, as in HTTP/1.0, are no browsers.
 */
function isForThisMachine(header: string | undefined): boolean {
  if (header === undefined) return true;
  const [, literal = "", word = ""] = HOST.exec(header) ?? [];
  return isIPv6(literal) || isIPv4(word) || word.toLowerCase() === "localhost";
}
