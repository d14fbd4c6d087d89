/**
 * Scripted engine: a Unix socket that answers as Docker 28 did when its JSON was recorded, for any number of
 * containers, over real namespaces. For tests with more containers or faster changes than a real engine manages here.
 */
import { readFileSync, rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { latch } from "../../../src/base/lib/async.ts";

type Json = Record<string, unknown>;

const RECORDED = JSON.parse(
  readFileSync(new URL("../../../../test/support/scripted/recorded/engine-28.json", import.meta.url), "utf8"),
) as { version: Json; info: Json; listed: Json; container: Json; network: Json };
const NETWORK_ID = RECORDED.network["Id"] as string;
/** Time of a real engine for the inspect of an unchanged container. */
const INSPECT_MS = 0.4;

export interface ScriptedContainer {
  readonly name: string;
  /** Path of its network namespace. */
  readonly path: string;
  readonly address: string;
  readonly aliases?: readonly string[];
}

type Running = ScriptedContainer & { readonly id: string; readonly start: number };

export class ScriptedEngine implements AsyncDisposable {
  readonly #folder: string;
  readonly #server: Server;
  readonly #running = new Map<string, Running>();
  readonly #listeners = new Set<ServerResponse>();
  /** Inspects of a container wait for its gate, by id. */
  readonly #held = new Map<string, Promise<void>>();
  #starts = 0;
  /** Inspects run one after the other, as in a real engine. */
  #queue: Promise<unknown> = Promise.resolve();

  private constructor(folder: string) {
    this.#folder = folder;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(): Promise<ScriptedEngine> {
    const engine = new ScriptedEngine(await mkdtemp(join(tmpdir(), "d11-scripted-")));
    await new Promise<void>((resolve) => engine.#server.listen(engine.#path, resolve));
    return engine;
  }

  get host(): string {
    return `unix://${this.#path}`;
  }

  /** How many read its events. */
  get followers(): number {
    return this.#listeners.size;
  }

  /** Starts a container and sends the events. */
  run(container: ScriptedContainer): void {
    this.#starts += 1;
    const id = idOf(container.name);
    this.#running.set(id, { ...container, id, start: this.#starts });
    this.#sendEvent("network", "connect", NETWORK_ID, { container: id });
    this.#sendEvent("container", "start", id);
  }

  die(name: string): void {
    const id = idOf(name);
    this.#running.delete(id);
    this.#sendEvent("container", "die", id);
    this.#sendEvent("network", "disconnect", NETWORK_ID, { container: id });
  }

  /** Has inspects of this container wait, as those of one do that is starting, until the returned function is called. */
  hold(name: string): () => void {
    const { passed, open } = latch();
    this.#held.set(idOf(name), passed);
    return open;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const listener of this.#listeners) listener.destroy();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#folder, { recursive: true });
  }

  get #path(): string {
    return join(this.#folder, "engine.sock");
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = "", query = ""] = (request.url ?? "").split("?", 2);
    const [, container] = /^\/containers\/([^/]+)\/json$/.exec(path) ?? [];
    if (path === "/events") return this.#listen(response);
    if (path === "/version") return answer(response, RECORDED.version);
    if (path === "/info") return answer(response, RECORDED.info);
    if (path === "/containers/json" && query.includes("filters")) return answer(response, []);
    if (path === "/containers/json") return answer(response, [...this.#running.values()].map(listedOf));
    if (path === "/networks") return answer(response, [RECORDED.network]);
    if (path.startsWith("/networks/")) return answer(response, RECORDED.network);
    await this.#held.get(container ?? "");
    const running = this.#running.get(container ?? "");
    await (this.#queue = this.#queue.then(async () => await sleep(INSPECT_MS)));
    answer(response, running === undefined ? undefined : inspectedOf(running));
  }

  #listen(response: ServerResponse): void {
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    this.#listeners.add(response);
    response.on("close", () => this.#listeners.delete(response));
  }

  #sendEvent(type: string, action: string, id: string, attributes: Json = {}): void {
    const event = { Type: type, Action: action, Actor: { ID: id, Attributes: attributes }, scope: "local" };
    for (const listener of this.#listeners) listener.write(`${JSON.stringify(event)}\n`);
  }
}

/** Sixty-four hexadecimal digits, always the same for a name. */
function idOf(name: string): string {
  return Buffer.from(name).toString("hex").padStart(64, "0");
}

function listedOf(running: Running): Json {
  const { listed } = RECORDED;
  const settings = (listed["NetworkSettings"] as { Networks: { one: Json } }).Networks.one;
  const one = { ...settings, EndpointID: endpointOf(running), IPAddress: running.address };
  return { ...listed, Id: running.id, Names: [`/${running.name}`], NetworkSettings: { Networks: { one } } };
}

function inspectedOf(running: Running): Json {
  const { container } = RECORDED;
  const { name, id, path, address, aliases = [], start } = running;
  const settings = container["NetworkSettings"] as Json & { Networks: { one: Json } };
  const one = {
    ...settings.Networks.one,
    EndpointID: endpointOf(running),
    IPAddress: address,
    Aliases: aliases,
    DNSNames: [name, ...aliases, id.slice(0, 12)],
  };
  return {
    ...container,
    Id: id,
    Name: `/${name}`,
    State: { ...(container["State"] as Json), Pid: 0, StartedAt: new Date(start).toISOString() },
    ResolvConfPath: "",
    NetworkSettings: { ...settings, SandboxKey: path, Networks: { one } },
  };
}

/** Changes each time it connects. */
function endpointOf({ id, start }: Running): string {
  return id.slice(0, 48) + start.toString(16).padStart(16, "0");
}

function answer(response: ServerResponse, body: unknown): void {
  response.writeHead(body === undefined ? 404 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify(body ?? { message: "No such container" }));
}
