/**
 * HTTP: serves routes with one JSON value, a stream of JSON lines, or plain text. An error fails only its own request.
 */
import { once } from "node:events";
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

import { ownRound } from "../../base/lib/own-round.ts";
import { readBody } from "../../base/lib/request-body.ts";
import { Fault, codeOf, isInternalError, reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { writeJson } from "../../base/lib/json-pieces.ts";
import { escapedJson, printableJson } from "../../base/lib/printable.ts";

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
export interface LineRequest {
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
    await ownRound();
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
