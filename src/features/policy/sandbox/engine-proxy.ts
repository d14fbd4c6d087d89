/**
 * EngineProxy: a socket that passes requests on to an engine. Each is shown first, and may be changed, answered here, or wait. What a
 * request upgrades to, such as the streams of a terminal, is passed on as it is.
 */
import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  createServer,
  request,
} from "node:http";
import { type Socket, connect } from "node:net";

import { Fault, reasonOf, reasonWithRemedy } from "../../../base/lib/fault.ts";

/** An engine takes no longer body that describes something. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;
/** Filters and settings of builds are headers and parameters, and may be long. */
const HEADER_BYTES_MAX = 1024 * 1024;
/** A version of the API may stand before a path. */
const TARGET = /^(?:\/v[\d.]+)?(\/.*)$/;
/** The engine has accepted to talk in another way. */
const SHOWN_LENGTH = 100;
const UPGRADED = "HTTP/1.1 101 ";

export interface EngineCall {
  readonly method: string;
  /** Decoded, without the version of the API. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Its body. A request that upgrades has none that can be read. */
  readonly json: () => Promise<unknown>;
  /** The engine's answer to it. */
  readonly forward: () => Promise<EngineReply>;
}

export interface EngineReply {
  readonly status: number;
  readonly text: string;
}

/** What becomes of a call: undefined passes it on, a body that was read as it was understood. A Fault refuses it. */
type Outcome = { readonly body: unknown } | { readonly reply: EngineReply } | undefined;

export type OnCall = (call: EngineCall) => Promise<Outcome>;

export class EngineProxy {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async listen(engine: string, path: string, onCall: OnCall): Promise<EngineProxy> {
    const server = createServer({ maxHeaderSize: HEADER_BYTES_MAX }, (incoming, outgoing) => {
      void pass(engine, onCall, incoming, outgoing).catch((error: unknown) => refuse(outgoing, error));
    });
    // A build, or a container that is awaited, takes any time.
    server.requestTimeout = 0;
    server.keepAliveTimeout = 0;
    server.on("upgrade", (incoming, socket, head) => void tunnel(engine, onCall, incoming, socket as Socket, head));
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(path, resolve));
    return new EngineProxy(server);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** A request of our own to the engine. */
export async function askEngine(
  engine: string,
  method: string,
  path: string,
  body?: string | Buffer,
  headers: IncomingHttpHeaders = { host: "docker" },
): Promise<EngineReply> {
  return await new Promise((resolve, reject) => {
    const typed = body === undefined ? headers : { "content-type": "application/json", ...headers };
    const outgoing = request({ socketPath: engine, method, path, headers: typed, agent: false }, (reply) => {
      textOf(reply).then((text) => resolve({ status: reply.statusCode ?? 0, text }), reject);
    });
    outgoing.on("error", reject).end(body);
  });
}

async function pass(
  engine: string,
  onCall: OnCall,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  let read: Promise<string> | undefined;
  const bodyText = async (): Promise<string> => await (read ??= textOf(incoming));
  const { method = "GET", url = "/" } = incoming;
  const outcome = await onCall({
    ...targetOf(method, url),
    json: async () => readJson(await bodyText()),
    forward: async () =>
      await askEngine(engine, method, url, written(await bodyText()), withoutLength(incoming.headers)),
  });
  if (outcome !== undefined && "reply" in outcome) {
    const { status, text } = outcome.reply;
    outgoing.writeHead(status, { "content-type": "application/json" }).end(text);
    return;
  }
  const changed = outcome === undefined ? read && written(await read) : JSON.stringify(outcome.body);
  const headers = changed === undefined ? incoming.headers : withoutLength(incoming.headers);
  const to = { socketPath: engine, path: url, method, headers, agent: false, maxHeaderSize: HEADER_BYTES_MAX };
  const passed = request(to, (reply) => {
    outgoing.writeHead(reply.statusCode ?? 502, reply.headers);
    // What an engine tells as it happens is not waited for.
    outgoing.flushHeaders();
    reply.on("error", () => outgoing.destroy()).pipe(outgoing);
  });
  passed.on("error", (error) => refuse(outgoing, error));
  outgoing.on("close", () => passed.destroy());
  if (changed === undefined) incoming.pipe(passed);
  else passed.end(changed);
}

function refuse(outgoing: ServerResponse, error: unknown): void {
  if (outgoing.headersSent) {
    outgoing.destroy();
    return;
  }
  outgoing.writeHead(error instanceof Fault ? 409 : 502, { "content-type": "application/json" }).end(messageOf(error));
}

function messageOf(error: unknown): string {
  return JSON.stringify({
    message: `dns11 sandbox: ${error instanceof Fault ? reasonWithRemedy(error) : reasonOf(error)}`,
  });
}

async function tunnel(
  engine: string,
  onCall: OnCall,
  incoming: IncomingMessage,
  client: Socket,
  head: Buffer,
): Promise<void> {
  const { method = "GET", url = "/", rawHeaders } = incoming;
  client.on("error", () => client.destroy());
  try {
    const none = async (): Promise<never> => await Promise.reject(new Error("its body cannot be read"));
    const outcome = await onCall({ ...targetOf(method, url), json: none, forward: none });
    // The end of a body in chunks would have to be looked for.
    if (outcome !== undefined || incoming.headers["transfer-encoding"] !== undefined)
      throw new Error(`${method} ${url} cannot be upgraded like this`);
  } catch (error) {
    const text = messageOf(error);
    const length = Buffer.byteLength(text);
    client.end(
      `HTTP/1.1 409 Conflict\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n${text}`,
    );
    return;
  }
  // Each side may end what it sends before the other one does.
  const server = connect({ path: engine, allowHalfOpen: true });
  server.on("error", () => client.destroy()).on("close", () => client.destroy());
  client.on("close", () => server.destroy());
  const lines = rawHeaders.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${rawHeaders[index + 1]}`] : []));
  server.write(`${method} ${url} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
  // Of what comes before the engine has answered, only the body is passed on: a request behind it would not be shown.
  let bodyLeft = Number(incoming.headers["content-length"] ?? 0);
  const held: Buffer[] = [];
  const early = (chunk: Buffer): void => {
    if (bodyLeft > 0) server.write(chunk.subarray(0, bodyLeft));
    if (chunk.length > bodyLeft) {
      held.push(chunk.subarray(bodyLeft));
      client.pause();
    }
    bodyLeft = Math.max(0, bodyLeft - chunk.length);
  };
  client.on("data", early);
  early(head);
  server.once("data", (first: Buffer) => {
    server.pause();
    client.off("data", early);
    client.write(first);
    server.pipe(client);
    if (first.toString("latin1", 0, UPGRADED.length) !== UPGRADED) {
      client.once("data", () => client.destroy());
      if (held.length > 0) client.end();
      client.resume();
      return;
    }
    for (const chunk of held) server.write(chunk);
    if (client.readableEnded) server.end();
    else client.pipe(server);
  });
}

/** The engine reads `%63reate` as `create`, so it is decoded here, too. */
function targetOf(method: string, url: string): Pick<EngineCall, "method" | "path" | "query"> {
  const [encoded = "", query] = url.split(/\?(.*)/s, 2);
  let decoded = "";
  try {
    decoded = decodeURIComponent(encoded);
  } catch {
    // It is none that an engine has.
  }
  const [, path] = TARGET.exec(decoded) ?? [];
  if (path === undefined)
    throw new Fault("USAGE", `"${encoded.slice(0, SHOWN_LENGTH)}" is no path of the engine's`, {
      remedy: "Use a path that begins with /.",
    });
  return { method, path, query: new URLSearchParams(query) };
}

function withoutLength(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const { "content-length": _length, "transfer-encoding": _encoding, ...others } = headers;
  return others;
}

/** What has been looked at, and nothing else: of a key that is there twice the engine would put both values together. */
function written(text: string): string {
  return text === "" ? "" : JSON.stringify(JSON.parse(text));
}

function readJson(text: string): unknown {
  return text === "" ? {} : ((JSON.parse(text) as unknown) ?? {});
}

async function textOf(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX)
      throw new Fault("USAGE", `A description has more than ${BODY_BYTES_MAX} bytes`, { remedy: "Shorten it." });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
