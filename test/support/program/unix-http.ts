/** HTTP client for JSON over a Unix socket, such as dockerd's. */
import { request } from "node:http";

export async function getJson(socketPath: string, path: string): Promise<unknown> {
  const { status, body } = await get(socketPath, path);
  if (status !== 200) throw new Error(`GET ${path}: ${status}: ${body.trim()}`);
  return JSON.parse(body);
}

export async function answers(socketPath: string, path: string): Promise<boolean> {
  try {
    return (await get(socketPath, path)).status === 200;
  } catch {
    return false;
  }
}

/** Sends JSON, or the bytes of an archive. Returns the JSON of the response; undefined if it has no body. */
export async function postJson(socketPath: string, path: string, json: unknown): Promise<unknown> {
  const { status, body } = await exchange(socketPath, path, json);
  if (status >= 400) throw new Error(`POST ${path}: ${status}: ${body.trim()}`);
  return body.trim() === "" ? undefined : JSON.parse(body);
}

/** Fails if there is nothing at this path. */
export async function deleteAt(socketPath: string, path: string): Promise<void> {
  const { status, body } = await exchange(socketPath, path, undefined, "DELETE");
  if (status >= 300) throw new Error(`DELETE ${path}: ${status}: ${body.trim()}`);
}

async function get(socketPath: string, path: string): Promise<{ status: number; body: string }> {
  return await exchange(socketPath, path);
}

/** For a server that hangs; starting or removing a container takes long on a busy machine. */
const TIMEOUT_MS = 120_000;

async function exchange(
  socketPath: string,
  path: string,
  json?: unknown,
  method = json === undefined ? "GET" : "POST",
): Promise<{ status: number; body: string }> {
  const type = Buffer.isBuffer(json) ? "application/x-tar" : "application/json";
  const headers = json === undefined ? {} : { "content-type": type };
  return await new Promise((resolve, reject) => {
    // No agent: a kept-alive connection would keep the test process alive.
    const outgoing = request({ socketPath, path, method, headers, agent: false, timeout: TIMEOUT_MS }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (body += chunk));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      response.on("error", reject);
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error(`${method} ${path}: timeout`)));
    outgoing.on("error", reject);
    // In chunks: behind a body of known length Node writes once more, and an engine that has imported it has closed by then.
    if (Buffer.isBuffer(json)) outgoing.write(json);
    outgoing.end(json === undefined || Buffer.isBuffer(json) ? undefined : JSON.stringify(json));
  });
}
