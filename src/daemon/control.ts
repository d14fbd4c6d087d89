/**
 * Control: the socket through which people and programs look into a running dns11. HTTP on a unix socket, paths under
 * /v1/, JSON; readable by root and by the group that may talk to Docker, because it tells nothing that Docker does not.
 */
import { chmodSync, chownSync, readFileSync, rmSync } from "node:fs";
import { type IncomingMessage, type Server, type ServerResponse, createServer, request } from "node:http";

import { Fault, codeOf } from "../lib/fault.ts";
import type { Status } from "./status.ts";

const MODE = 0o660;
const CLIENT_TIMEOUT_MS = 5_000;
/** More people than that do not look at once. */
const CONNECTIONS_MAX = 32;
const ROOT = 0;

export class Control {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async listen(path: string, status: () => Status): Promise<Control> {
    const server = createServer((incoming, outgoing) => serve(incoming, outgoing, status));
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

function serve(incoming: IncomingMessage, outgoing: ServerResponse, status: () => Status): void {
  const path = incoming.url?.split("?", 1)[0];
  if (path !== "/v1/status") return send(outgoing, 404, { error: `There is no "${path ?? ""}" here; see /v1/status` });
  if (incoming.method !== "GET") return send(outgoing, 405, { error: "Only GET is answered" });
  return send(outgoing, 200, status());
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
  const body = await new Promise<string>((resolve, reject) => {
    const asked = request({ socketPath: path, path: "/v1/status", timeout: CLIENT_TIMEOUT_MS }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
      answer.on("error", reject);
    });
    asked.on("timeout", () => asked.destroy(new Error("no answer in time")));
    asked.on("error", (error) => reject(clientFault(path, error)));
    asked.end();
  });
  return JSON.parse(body) as Status;
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
