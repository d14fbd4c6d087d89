/**
 * Control: the socket through which people and programs look into a running dns11. HTTP on a unix socket, paths under
 * /v1/, JSON; readable by root and by the group that may talk to Docker, because it tells nothing that Docker does not.
 */
import { chmodSync, chownSync, readFileSync, rmSync } from "node:fs";
import { type IncomingMessage, type Server, type ServerResponse, createServer, request } from "node:http";

import { Fault, codeOf, reasonOf } from "../lib/fault.ts";
import type { Status } from "./status.ts";

const MODE = 0o660;
/** Nobody has more to say. */
const BODY_BYTES_MAX = 4096;
const CLIENT_TIMEOUT_MS = 5_000;
/** More people than that do not look at once. */
const CONNECTIONS_MAX = 32;
const ROOT = 0;

/** What is asked for, by method and path, and what the answer is; a Fault is told to whoever asked. */
export type Routes = Readonly<Record<string, (body: unknown) => unknown>>;

export class Control {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async listen(path: string, routes: Routes): Promise<Control> {
    const server = createServer((incoming, outgoing) => void serve(incoming, outgoing, routes));
    server.maxConnections = CONNECTIONS_MAX;
    server.unref();
    // Whoever left a socket here is gone: we hold the lock.
    rmSync(path, { force: true });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(path, resolve);
    });
    chmodSync(path, MODE);
    shareWith("docker", path);
    return new Control(server);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Where the group does not exist, or files may not be given to it, root alone may ask. */
function shareWith(group: string, path: string): void {
  const id = groupId(group);
  if (id === undefined) return;
  try {
    chownSync(path, ROOT, id);
  } catch (error) {
    if (codeOf(error) !== "EPERM") throw error;
  }
}

async function serve(incoming: IncomingMessage, outgoing: ServerResponse, routes: Routes): Promise<void> {
  const path = incoming.url?.split("?", 1)[0] ?? "";
  const method = incoming.method ?? "";
  const route = routes[`${method} ${path}`];
  if (route === undefined) {
    const others = Object.keys(routes).filter((key) => key.endsWith(` ${path}`));
    if (others.length > 0) return send(outgoing, 405, { error: `Only ${others.join(", ")} is answered` });
    return send(outgoing, 404, { error: `There is no "${path}" here; there are ${Object.keys(routes).join(", ")}` });
  }
  try {
    send(outgoing, 200, route(await bodyOf(incoming)));
  } catch (error) {
    send(outgoing, 400, { error: reasonOf(error), code: codeOf(error) ?? "DEFECT" });
  }
}

async function bodyOf(incoming: IncomingMessage): Promise<unknown> {
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

/** Asks a running instance. */
export async function fetchStatus(path: string): Promise<Status> {
  return (await ask(path, "GET", "/v1/status")) as Status;
}

/** Has a running instance leave a node, or serve it again; returns which one that was. */
export async function postKind(
  path: string,
  verb: "detach" | "attach",
  node: string,
): Promise<{ readonly name: string }> {
  return (await ask(path, "POST", `/v1/kind/${verb}`, { node })) as { readonly name: string };
}

async function ask(socketPath: string, method: string, path: string, body?: unknown): Promise<unknown> {
  const { code, text } = await new Promise<{ code: number; text: string }>((resolve, reject) => {
    const asked = request({ socketPath, path, method, timeout: CLIENT_TIMEOUT_MS }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("end", () => resolve({ code: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }));
      answer.on("error", reject);
    });
    asked.on("timeout", () => asked.destroy(new Error("no answer in time")));
    asked.on("error", (error) => reject(clientFault(socketPath, error)));
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
  const answer: unknown = JSON.parse(text);
  if (code === 200) return answer;
  const { error, code: word } = answer as { readonly error?: string; readonly code?: string };
  throw new Fault(word ?? "CONTROL", error ?? `The dns11 at "${socketPath}" answered ${code}`);
}

function clientFault(path: string, cause: Error): Fault {
  const code = codeOf(cause);
  if (code === "ENOENT" || code === "ECONNREFUSED") {
    return new Fault("NOT_RUNNING", `No dns11 is running for this engine (nobody at "${path}")`, {
      remedy: "Start it with: dns11 run",
    });
  }
  const isDenied = code === "EACCES";
  return new Fault(isDenied ? "CONTROL_PERMISSION" : "CONTROL", `Cannot ask the dns11 at "${path}"`, {
    cause,
    ...(isDenied && { remedy: "Root, and the group docker where it exists, may ask." }),
  });
}
