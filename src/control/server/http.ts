/**
 * HTTP: serves routes with one JSON value, a stream of JSON lines, or plain text. An error fails only its own request.
 */
import { once } from "node:events";
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  createServer,
} from "node:http";
import type { Socket } from "node:net";
import { ownSlice, writeJson } from "../../base/lib/slices.ts";
import { readBody } from "../../base/lib/request-body.ts";
import { Fault, codeOf, isInternalError, reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { escapedJson, printableJson } from "../../base/lib/text.ts";
import type { Duplex } from "node:stream";
import { readFileSync, rmSync } from "node:fs";
import { peerProcess, SOCK_STREAM } from "../../kernel/libc.ts";
import { LIMITS } from "../../base/limits.ts";
import { bindUnix } from "../../kernel/unix-listener.ts";

const BODY_BYTES_MAX = 4096;
/** How long lines are sent before others have their turn. */
const TURN_MS = 1;
const MISDIRECTED = 421;
const NEWLINE = 0x0a;

/** The parts of a request other than method and path. */
export interface ApiRequest {
  readonly body: unknown;
  readonly query: URLSearchParams;
  /** What stands in the path for the "*" at the end of its route. */
  readonly rest: string;
  /** Aborted when the client has closed the connection. */
  readonly signal: AbortSignal;
  /** The connection. */
  readonly socket?: Socket;
}

/** A response that is not JSON, or has its own status. */
export class TextResponse {
  readonly status: number;
  readonly type: string;
  readonly text: string;

  constructor(status: number, type: string, text: string) {
    this.status = status;
    this.type = type;
    this.text = text;
  }
}

/** A request whose lines are answered while they come. */
interface LineRequest {
  /** undefined in place of a line that is too long. Ends with the request, or with the connection. */
  readonly lines: AsyncIterator<string | undefined>;
  readonly socket: Socket;
}

/** A route for such requests. Its answers are sent as they come, a line each. */
export class LineRoute {
  readonly bytesMax: number;
  readonly answer: (request: LineRequest) => AsyncIterable<unknown>;

  /** `bytesMax` of one line. */
  constructor(bytesMax: number, answer: (request: LineRequest) => AsyncIterable<unknown>) {
    this.bytesMax = bytesMax;
    this.answer = answer;
  }
}

/**
 * Handlers by method and path. A handler returns a value, a promise of one, or an async iterable whose values are sent as
 * they come, a line each. A Fault becomes an error response.
 */
export type Routes = Readonly<Record<string, ((request: ApiRequest) => unknown) | LineRoute>>;

/** Serves the routes on a server, which does not keep the process alive. `refusal` is why a request gets no answer, if it does not. */
export function serveRoutes(
  server: Server,
  routes: Routes,
  refusal: (headers: IncomingHttpHeaders) => string | undefined = () => undefined,
): Server {
  server.on("request", (incoming, outgoing) => {
    const reason = refusal(incoming.headers);
    const sent =
      reason === undefined ? handleRequest(incoming, outgoing, routes) : send(outgoing, MISDIRECTED, { error: reason });
    sent.catch((error: unknown) => {
      guard.report(error, "control");
      outgoing.destroy();
    });
  });
  // A lease is a request that stays open. Headers still have to come in time.
  server.requestTimeout = 0;
  return server.unref();
}

async function handleRequest(incoming: IncomingMessage, outgoing: ServerResponse, routes: Routes): Promise<void> {
  // The path is only compared with the routes; others, such as "//" or "*", need no parsing.
  const [path = "", ...rest] = (incoming.url ?? "").split("?");
  const query = new URLSearchParams(rest.join("?"));
  // Node leaves out the body of a HEAD response.
  const method = incoming.method === "HEAD" ? "GET" : (incoming.method ?? "");
  const key = routeFor(routes, `${method} ${path}`);
  const route = routes[key];
  if (route === undefined) {
    const others = Object.keys(routes).filter((each) => each.endsWith(` ${path}`));
    if (others.length > 0) return await send(outgoing, 405, { error: `Method not allowed: use ${others.join(", ")}` });
    return await send(outgoing, 404, { error: `Unknown path "${path}": use ${Object.keys(routes).join(", ")}` });
  }
  const closed = new AbortController();
  outgoing.on("close", () => closed.abort());
  try {
    if (route instanceof LineRoute) {
      const lines = linesOf(incoming, route.bytesMax);
      await sendLines(outgoing, route.answer({ lines, socket: incoming.socket }), closed.signal);
      return;
    }
    const after = `${method} ${path}`.slice(key.length - 1);
    const answer = await route({
      body: await readJson(incoming),
      query,
      rest: after,
      signal: closed.signal,
      socket: incoming.socket,
    });
    if (answer instanceof TextResponse) sendText(outgoing, answer);
    else if (isStream(answer)) await sendLines(outgoing, answer, closed.signal);
    else await send(outgoing, 200, answer);
  } catch (error) {
    // A stream has already started: it just breaks off.
    const isInternal = isInternalError(error);
    if (isInternal) guard.report(error, "control");
    if (outgoing.headersSent) outgoing.destroy();
    else {
      // The rest of a request that goes on would have nobody to read it.
      if (route instanceof LineRoute) outgoing.on("finish", () => incoming.socket.destroySoon());
      await send(outgoing, isInternal ? 500 : 400, errorBody(error));
    }
  }
}

/** The key of a route, which may end with "*". */
function routeFor(routes: Routes, request: string): string {
  if (Object.hasOwn(routes, request)) return request;
  return Object.keys(routes).find((key) => key.endsWith("*") && request.startsWith(key.slice(0, -1))) ?? request;
}

function errorBody(error: unknown): object {
  const remedy = error instanceof Fault ? error.remedy : undefined;
  return { error: reasonOf(error), code: codeOf(error) ?? "DEFECT", ...(remedy !== undefined && { remedy }) };
}

function isStream(answer: unknown): answer is AsyncIterable<unknown> {
  return typeof answer === "object" && answer !== null && Symbol.asyncIterator in answer;
}

/** Sends a line for each value, with backpressure. */
async function sendLines(outgoing: ServerResponse, lines: AsyncIterable<unknown>, signal: AbortSignal): Promise<void> {
  outgoing.writeHead(200, { "content-type": "application/x-ndjson" });
  outgoing.flushHeaders();
  let turnMs = performance.now();
  for await (const line of lines) {
    if (signal.aborted) return;
    if (!outgoing.write(`${printableJson(line)}\n`)) await once(outgoing, "drain", { signal });
    // Lines that are there already would come one after the other, and no query in between.
    if (performance.now() - turnMs < TURN_MS) continue;
    await ownSlice();
    turnMs = performance.now();
  }
  outgoing.end();
}

/** A connection that breaks off ends them, like the end of the request. */
async function* linesOf(incoming: IncomingMessage, bytesMax: number): AsyncGenerator<string | undefined, void> {
  let parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      for (let at = 0; at < chunk.length;) {
        const end = chunk.indexOf(NEWLINE, at);
        const part = chunk.subarray(at, end === -1 ? chunk.length : end);
        bytes += part.length;
        if (bytes <= bytesMax) parts.push(part);
        if (end === -1) break;
        yield bytes <= bytesMax ? Buffer.concat(parts).toString("utf8") : undefined;
        parts = [];
        bytes = 0;
        at = end + 1;
      }
    }
  } catch {
    return;
  }
  if (bytes > 0) yield bytes <= bytesMax ? Buffer.concat(parts).toString("utf8") : undefined;
}

async function readJson(incoming: IncomingMessage): Promise<unknown> {
  const body = await readBody(incoming, BODY_BYTES_MAX);
  if (body.length === 0) return undefined;
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw new Fault("NOT_JSON", "Invalid JSON in the request body", { cause: error });
  }
}

async function send(outgoing: ServerResponse, code: number, body: unknown): Promise<void> {
  outgoing.writeHead(code, { "content-type": "application/json" });
  await writeJson(body, (text) => outgoing.write(escapedJson(text)));
  outgoing.end("\n");
}

function sendText(outgoing: ServerResponse, { status, type, text }: TextResponse): void {
  outgoing.writeHead(status, { "content-type": type });
  outgoing.end(text);
}

/**
 * Bounds the connections of a port that any process on the machine can connect to. At the limit a new
 * connection replaces the oldest one without a request, or else the oldest one: idle connections cannot block others, because
 * a real client sends its request at once.
 */
export class ConnectionLimit {
  readonly #max: number;
  /** In order of arrival, with whether a request has arrived. */
  readonly #open = new Map<Duplex, boolean>();

  constructor(server: Server, max: number) {
    this.#max = max;
    server.on("connection", (socket: Duplex) => this.#enter(socket));
    server.on("request", ({ socket }) => {
      if (this.#open.has(socket)) this.#open.set(socket, true);
    });
  }

  /** Closes all connections. */
  close(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }

  #enter(socket: Duplex): void {
    if (this.#open.size >= this.#max) {
      const all = [...this.#open];
      const [evicted] = all.find(([, hasRequest]) => !hasRequest) ?? all[0] ?? [];
      if (evicted !== undefined) {
        this.#open.delete(evicted);
        evicted.destroy();
      }
    }
    this.#open.set(socket, false);
    socket.once("close", () => this.#open.delete(socket));
  }
}

/** The process at the other end of a connection to the control socket. Whoever reads that a fault is injected must find out by whom. */
export interface Holder {
  /** 0 if it is in another PID namespace. */
  readonly pid: number;
  /** Its command; empty if it is not known. */
  readonly command: string;
}

export function holderText({ pid, command }: Holder): string {
  if (pid === 0) return "a process in another PID namespace";
  return command === "" ? `pid ${pid}` : `${command}, pid ${pid}`;
}

/** As the kernel says it. Its command is that of its thread, which the kernel has at hand: its arguments may have to be waited for. */
export function holderOf(socket: object): Holder {
  // Node has no other name for it.
  const { _handle: handle } = socket as { readonly _handle?: { readonly fd?: number } | null };
  const fd = handle?.fd ?? -1;
  const pid = fd < 0 ? 0 : peerProcess(fd);
  return { pid, command: pid === 0 ? "" : commandOf(pid) };
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return "";
  }
}

/**
 * The unix socket of the API (JSON over HTTP, paths under /v1/). Accessible to root and the group docker,
 * because it exposes nothing that Docker does not; beside a rootless engine, to its user.
 */
export class ControlSocket {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async listen(path: string, routes: Routes, isShared: boolean): Promise<ControlSocket> {
    const server = serveRoutes(createServer(), routes);
    server.maxConnections = LIMITS.controlConnections;
    // We hold the lock, so an existing socket is a leftover.
    rmSync(path, { force: true });
    const fd = bindUnix(path, SOCK_STREAM, isShared ? (groupId("docker") ?? "own") : undefined);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ fd }, resolve);
    });
    // A connection that cannot be accepted, for lack of file descriptors, affects no other.
    server.on("error", () => undefined);
    return new ControlSocket(server);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Without such a group only root has access. */
function groupId(name: string): number | undefined {
  try {
    const line = readFileSync("/etc/group", "utf8")
      .split("\n")
      .find((entry) => entry.startsWith(`${name}:`));
    return line === undefined ? undefined : Number(line.split(":")[2]);
  } catch {
    return undefined;
  }
}
