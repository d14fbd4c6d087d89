/**
 * HTTP: routes, and how a server answers them: one JSON value, a line of JSON for each of many, or a page of text. A defect
 * or a mistake costs the one request.
 */
import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";

import { Fault, codeOf, isInternalError, reasonOf } from "../base/lib/fault.ts";
import { guard } from "../base/lib/guard.ts";

/** Nobody has more to say. */
const BODY_BYTES_MAX = 4096;

/** What somebody asks for beside method and path. */
export interface ApiRequest {
  readonly body: unknown;
  readonly query: URLSearchParams;
  /** Aborted when nobody waits for the answer any longer. */
  readonly signal: AbortSignal;
}

/** An answer that is no JSON, or that has a status of its own. */
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

/**
 * What is asked for, by method and path, and what the answer is: a value, a promise of one, or many, which are sent as they
 * come, a line each. A Fault is told to whoever asked.
 */
export type Routes = Readonly<Record<string, (call: ApiRequest) => unknown>>;

/** A server that answers these routes, and is no reason to live on. */
export function serveRoutes(server: Server, routes: Routes): Server {
  server.on("request", (incoming, outgoing) => {
    handleRequest(incoming, outgoing, routes).catch((error: unknown) => {
      guard.report(error, "control");
      outgoing.destroy();
    });
  });
  return server.unref();
}

async function handleRequest(incoming: IncomingMessage, outgoing: ServerResponse, routes: Routes): Promise<void> {
  // Whatever else stands there, as in "//" or "*", is no path of ours: nothing of it is taken to pieces.
  const [path = "", ...rest] = (incoming.url ?? "").split("?");
  const query = new URLSearchParams(rest.join("?"));
  // Whoever asks for the head gets it without what follows; Node sees to that.
  const method = incoming.method === "HEAD" ? "GET" : (incoming.method ?? "");
  const route = routes[`${method} ${path}`];
  if (route === undefined) {
    const others = Object.keys(routes).filter((key) => key.endsWith(` ${path}`));
    if (others.length > 0) return send(outgoing, 405, { error: `Only ${others.join(", ")} is answered` });
    return send(outgoing, 404, { error: `There is no "${path}" here; there are ${Object.keys(routes).join(", ")}` });
  }
  const gone = new AbortController();
  outgoing.on("close", () => gone.abort());
  try {
    const answer = await route({ body: await readBody(incoming), query, signal: gone.signal });
    if (answer instanceof TextResponse) sendText(outgoing, answer);
    else if (isStream(answer)) await sendLines(outgoing, answer, gone.signal);
    else send(outgoing, 200, answer);
  } catch (error) {
    // Of a stream the beginning is out: its end without a last line says enough.
    const isOurs = isInternalError(error);
    if (isOurs) guard.report(error, "control");
    if (outgoing.headersSent) outgoing.destroy();
    else send(outgoing, isOurs ? 500 : 400, errorBody(error));
  }
}

function errorBody(error: unknown): object {
  const remedy = error instanceof Fault ? error.remedy : undefined;
  return { error: reasonOf(error), code: codeOf(error) ?? "DEFECT", ...(remedy !== undefined && { remedy }) };
}

function isStream(answer: unknown): answer is AsyncIterable<unknown> {
  return typeof answer === "object" && answer !== null && Symbol.asyncIterator in answer;
}

/** A reader that takes its time is waited for. */
async function sendLines(outgoing: ServerResponse, lines: AsyncIterable<unknown>, signal: AbortSignal): Promise<void> {
  outgoing.writeHead(200, { "content-type": "application/x-ndjson" });
  outgoing.flushHeaders();
  for await (const line of lines) {
    if (signal.aborted) return;
    if (!outgoing.write(`${JSON.stringify(line)}\n`)) await once(outgoing, "drain", { signal });
  }
  outgoing.end();
}

async function readBody(incoming: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX) throw new Fault("TOO_LONG", "That is more than anybody here has to be told");
    chunks.push(chunk);
  }
  if (length === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch (error) {
    throw new Fault("NOT_JSON", "What was sent is no JSON", { cause: error });
  }
}

function send(outgoing: ServerResponse, code: number, body: unknown): void {
  outgoing.writeHead(code, { "content-type": "application/json" });
  outgoing.end(`${JSON.stringify(body)}\n`);
}

function sendText(outgoing: ServerResponse, { status, type, text }: TextResponse): void {
  outgoing.writeHead(status, { "content-type": type });
  outgoing.end(text);
}
