/**
 * UnixHttp: a request to a server at a unix socket: to a running dns11 and, for its ID, to an engine. Commands need nothing
 * else from the engine, so they load no client for it.
 */
import { type IncomingMessage, request } from "node:http";

interface UnixRequest {
  readonly method?: string;
  readonly body?: unknown;
  /** The limit for the response headers and for each chunk. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Resolves when the response begins. */
export async function openUnix(
  socketPath: string,
  path: string,
  { method = "GET", body, timeoutMs: timeout, signal }: UnixRequest,
): Promise<IncomingMessage> {
  return await new Promise((resolve, reject) => {
    const headers = { host: "localhost" };
    // An agent would have its own timeout for kept connections.
    const options = { socketPath, path, method, headers, timeout, agent: false, ...(signal && { signal }) };
    const outgoing = request(options, resolve);
    outgoing.on("timeout", () => outgoing.destroy(new Error("no response in time")));
    outgoing.on("error", reject);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

export async function textOf(answer: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
