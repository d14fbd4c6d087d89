/** SampleControl: a control socket that sends a sample to the commands that connect, instead of a running dns11 with an engine. */
import { once } from "node:events";
import { chmodSync, mkdirSync } from "node:fs";
import { type Server, type ServerResponse, createServer } from "node:http";
import { join } from "node:path";

import type { Snapshot } from "../../../src/api/snapshot.ts";
import { makeFolder } from "../rig/folder.ts";

/** Sends queries for as long as they are read. */
export type QuerySource = (response: ServerResponse) => void;

export class SampleControl implements AsyncDisposable {
  /** Of its own: every user may connect. */
  readonly folder: string;
  readonly stateDir: string;
  /** Of an engine that is away. */
  readonly host: string;
  readonly #server: Server;

  private constructor(folder: string, server: Server) {
    this.folder = folder;
    this.stateDir = join(folder, "run");
    this.host = `unix://${folder}/engine.sock`;
    this.#server = server;
  }

  static async start(
    snapshot: Snapshot,
    sendQueries: QuerySource = (response) => void response.end(),
  ): Promise<SampleControl> {
    const folder = makeFolder("sample");
    chmodSync(folder, 0o755);
    const engine = { id: "sample", version: "28.5", address: `${folder}/engine.sock`, isConnected: true };
    const status = { engine, since: snapshot.takenAt, settings: {}, containers: [] };
    const parts: Readonly<Record<string, unknown>> = { ...snapshot, status };
    const server = createServer((request, response) => {
      const part = new URL(request.url ?? "", "http://dns11").pathname.slice("/v1/".length);
      if (part === "queries") return sendQueries(response);
      if (part === "events") return sendEvents(response, snapshot);
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(parts[part] ?? null));
    });
    const control = new SampleControl(folder, server);
    const socketFolder = join(control.stateDir, "sample");
    mkdirSync(socketFolder, { recursive: true });
    server.listen({ path: join(socketFolder, "control.sock"), readableAll: true, writableAll: true });
    await once(server, "listening");
    return control;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
}

/** The stream stays open. */
function sendEvents(response: ServerResponse, { events }: Snapshot): void {
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  for (const event of events?.events ?? []) response.write(`${JSON.stringify(event)}\n`);
}
