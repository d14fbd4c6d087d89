/**
 * UiServer: serves the page on loopback for as long as `dns11 ui` runs: its files, and what it may read of a running dns11. There is no
 * listener in the daemon; this server talks to the control socket as any command does, with the rights of its user.
 */
import { type IncomingMessage, type ServerResponse, createServer, type IncomingHttpHeaders } from "node:http";
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { readBody } from "../../base/lib/request-body.ts";
import { LIMITS } from "../../base/limits.ts";
import { ConnectionLimit } from "../../control/server/http.ts";
import { DoctorRun } from "./doctor-run.ts";
import { Loopback } from "./loopback.ts";
import { INDEX, type PageFiles, SECURITY_HEADERS } from "./page-files.ts";
import { RELAYED, Relay, type RelayLimits } from "./relay.ts";

const TOKEN_BYTES = 32;
const HOST_BYTES = 16;

export const TOKEN_HEADER = "x-dns11-token";

/** What a browser says about a request that the page, or the user, made. */
const OWN_SITES = new Set([undefined, "same-origin", "none"]);

interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly error: string;
  readonly remedy: string;
}

const BODY_BYTES_MAX = 4_096;
const HEADERS_MS = 5_000;
const REQUEST_MS = 10_000;
const API = "/v1/";
const DOCTOR = "POST /v1/doctor";
/** The status of an error that is not the fault of the request. */
const STATUS_OF: Readonly<Record<string, number>> = {
  UI_BUSY: 429,
  TOO_LONG: 413,
  NOT_RUNNING: 503,
  CONTROL_PERMISSION: 403,
};

interface UiServerParts {
  readonly port: number;
  readonly socketPath: string;
  readonly files: PageFiles;
  /** The doctor's program with its arguments. */
  readonly doctor: readonly string[];
  readonly limits?: RelayLimits;
}

export class UiServer {
  readonly #loopback: Loopback;
  readonly #gate: Gate;
  readonly #files: PageFiles;
  readonly #relay: Relay;
  readonly #doctor: DoctorRun;

  private constructor(loopback: Loopback, { socketPath, files, doctor, limits }: UiServerParts) {
    this.#loopback = loopback;
    this.#gate = new Gate(this.port);
    this.#files = files;
    this.#relay = new Relay(socketPath, limits);
    this.#doctor = new DoctorRun(doctor);
  }

  static async listen(parts: UiServerParts): Promise<UiServer> {
    const server = createServer({ headersTimeout: HEADERS_MS, requestTimeout: REQUEST_MS, maxHeaderSize: 8_192 });
    void new ConnectionLimit(server, LIMITS.pageConnections);
    const ui = new UiServer(await Loopback.listen(server, parts.port), parts);
    server.on("request", (incoming, outgoing) => void ui.#answer(incoming, outgoing));
    return ui;
  }

  get port(): number {
    return this.#loopback.port;
  }

  /** It has the token in the fragment, which browsers send to nobody. */
  get url(): string {
    return `http://${this.#gate.host}/#token=${this.#gate.token}`;
  }

  close(): void {
    this.#loopback.close();
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) outgoing.setHeader(name, value);
    try {
      await this.#route(incoming, outgoing);
    } catch (error) {
      if (outgoing.headersSent) outgoing.destroy();
      else sendError(outgoing, error);
    }
  }

  async #route(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = "", url = "" } = incoming;
    const at = url.indexOf("?");
    const [path, query] = at === -1 ? [url, ""] : [url.slice(0, at), url.slice(at + 1)];
    const refusal = this.#gate.refusal(incoming.headers, path.startsWith(API));
    if (refusal !== undefined) return sendJson(outgoing, refusal.status, refusal);
    const route = `${method} ${path}`;
    if (route === DOCTOR) return await this.#doctor.pass(await readBody(incoming, BODY_BYTES_MAX), outgoing);
    if (RELAYED.has(route)) {
      const body = method === "GET" ? Buffer.alloc(0) : await readBody(incoming, BODY_BYTES_MAX);
      return await this.#relay.pass({ method, path, query, body }, outgoing);
    }
    this.#sendFile(method, path, outgoing);
  }

  #sendFile(method: string, path: string, outgoing: ServerResponse): void {
    const isKnown = [...RELAYED, DOCTOR].some((route) => route.endsWith(` ${path}`));
    const file = this.#files.get(path === "/" ? INDEX : path.slice(1));
    if (file === undefined && !isKnown) {
      return sendJson(outgoing, 404, { error: "There is no such page", code: "UI_NOT_FOUND", remedy: "Open /." });
    }
    if (file === undefined || method !== "GET") {
      const error = "This method is not allowed here";
      return sendJson(outgoing, 405, { error, code: "UI_METHOD", remedy: "docs/api.md lists the routes." });
    }
    outgoing.writeHead(200, { "content-type": file.type, "content-length": file.bytes.length });
    outgoing.end(file.bytes);
  }
}

function sendError(outgoing: ServerResponse, error: unknown): void {
  const code = error instanceof Fault ? error.code : "DEFECT";
  const remedy = error instanceof Fault ? error.remedy : undefined;
  sendJson(outgoing, STATUS_OF[code] ?? (error instanceof Fault ? 400 : 500), { error: reasonOf(error), code, remedy });
}

/** The connection ends, because the rest of a refused request is not read. */
function sendJson(outgoing: ServerResponse, status: number, body: object): void {
  outgoing.writeHead(status, { "content-type": "application/json", connection: "close" });
  outgoing.end(`${JSON.stringify({ ...body, status: undefined })}\n`);
}

/**
 * Who may ask. The listener is on loopback, where every program of the machine and every page in a browser can connect. So a
 * request needs the token, which only the printed URL has; its Host must be that of the URL, against names that an attacker points to
 * 127.0.0.1 (DNS rebinding); and a page of another origin is refused. The host is new with each start: a program that listened on the
 * port before cannot have left a service worker for it in the browser, which would see the page and its token.
 */
class Gate {
  readonly token = randomBytes(TOKEN_BYTES).toString("hex");
  /** It has its port. Browsers resolve every name below `localhost` to the machine itself. */
  readonly host: string;
  readonly #digest = digestOf(this.token);

  constructor(port: number) {
    this.host = `d11-${randomBytes(HOST_BYTES).toString("hex")}.localhost:${port}`;
  }

  /** Why a request is refused; undefined if it may be answered. The files of the page need no token. */
  refusal(headers: IncomingHttpHeaders, needsToken: boolean): Refusal | undefined {
    const { host = "", origin, "sec-fetch-site": site } = headers;
    if (host !== this.host) {
      const remedy = "Open the URL that dns11 ui printed.";
      return { status: 403, code: "UI_HOST", error: "The request is for another host", remedy };
    }
    const isForeign = (origin !== undefined && origin !== `http://${host}`) || !OWN_SITES.has(site?.toString());
    if (isForeign) {
      const remedy = "Open the page itself: other pages may not read it.";
      return { status: 403, code: "UI_ORIGIN", error: "The request is from another page", remedy };
    }
    if (!needsToken || this.#isToken(headers[TOKEN_HEADER])) return undefined;
    const remedy = "Open the URL that dns11 ui printed: each start has a new one.";
    return { status: 401, code: "UI_TOKEN", error: "The token is missing or wrong", remedy };
  }

  /** Digests have the same length, and their comparison takes the same time, whatever was sent. */
  #isToken(sent: string | readonly string[] | undefined): boolean {
    return typeof sent === "string" && timingSafeEqual(digestOf(sent), this.#digest);
  }
}

function digestOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
