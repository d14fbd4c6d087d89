/**
 * Engine: the calls of the engine's API that dns11 makes, each with a timeout. Of dockerode they need its HTTP client, the
 * modem; the bundle leaves out the rest.
 */
import type { IncomingMessage } from "node:http";
import { createInterface } from "node:readline";
import { addAbortSignal } from "node:stream";

import Dockerode from "dockerode";

import { LIMITS } from "../../base/limits.ts";
import { codeOf } from "../../base/lib/fault.ts";
import { ReplyBytes } from "../../base/lib/reply-bytes.ts";
import { readJsonList } from "../../base/lib/json-pieces.ts";
import { engineFault } from "../../base/model/engine-fault.ts";
import type { ContainerJson, ImageJson, ImagePlatform, ListedJson, NetworkJson } from "./engine-json.ts";
import type { ServiceJson, TaskJson, VerboseNetworkJson } from "./swarm-json.ts";

export interface EngineInfo {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly majorVersion: number;
  readonly apiVersion: string;
  readonly isRootless: boolean;
}

/** An event: which container or network to inspect. */
export interface EngineEvent {
  readonly Type?: string;
  readonly Action?: string;
  /** Nanoseconds since 1970, rounded to the precision of a number. */
  readonly timeNano?: number;
  readonly Actor?: { readonly ID?: string; readonly Attributes?: Readonly<Record<string, string>> };
}

/** Events that change names, addresses or namespaces. The engine does not send others (exec, attach, health). */
const EVENT_FILTER: Dockerode.GetEventsOptions["filters"] = {
  type: ["container", "network"],
  event: [
    "create",
    "start",
    "die",
    "destroy",
    "rename",
    "pause",
    "unpause",
    "health_status",
    "connect",
    "disconnect",
    "remove",
  ],
};

const STOPPED = ["created", "exited", "dead"];
const STOPPED_FILTER = JSON.stringify({ status: STOPPED });
const NOT_RUNNING_FILTER = JSON.stringify({ status: [...STOPPED, "restarting", "removing"] });

interface Modem {
  dial(request: ModemRequest, done: (error: unknown, body: unknown) => void): void;
}

interface ModemRequest {
  /** Ends with a question mark where `options` are its parameters. */
  readonly path: string;
  readonly method: "GET";
  readonly abortSignal: AbortSignal;
  /** Every other status is an error. */
  readonly statusCodes: Readonly<Record<number, boolean>>;
  readonly options?: object;
  /** The body is the reply's stream, not its JSON. */
  readonly isStream?: boolean;
}

interface VersionJson {
  readonly Version: string;
  readonly ApiVersion: string;
}

interface InfoJson {
  readonly ID?: string;
  readonly Name?: string;
  readonly SecurityOptions?: readonly string[] | null;
  readonly Swarm?: {
    readonly RemoteManagers?: readonly { readonly Addr?: string }[] | null;
    readonly NodeAddr?: string;
  };
}

/** The only successful status of most calls; the modem turns every other into an error. */
const STATUS_CODES = { 200: true };
/** The modem prefers DOCKER_HOST to a socket unless it is told that there is no other host. */
const NO_OTHER_HOST = { host: undefined, protocol: "http" };

export class Engine {
  readonly #modem: Modem;
  readonly #socketPath: string;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
    this.#modem = new Dockerode({ socketPath, ...(NO_OTHER_HOST as object) }).modem;
  }

  async describe(signal?: AbortSignal): Promise<EngineInfo> {
    const [version, info] = await Promise.all([
      this.#get<VersionJson>("/version", LIMITS.inspectMs, signal),
      this.#get<InfoJson>("/info", LIMITS.listMs, signal),
    ]);
    return {
      id: info.ID ?? "",
      name: info.Name ?? "",
      version: version.Version,
      majorVersion: Number.parseInt(version.Version, 10) || 0,
      apiVersion: version.ApiVersion,
      isRootless: (info.SecurityOptions ?? []).some((option) => option.includes("rootless")),
    };
  }

  /** The running containers, as summaries. */
  async containers(): Promise<readonly ListedJson[]> {
    return await this.#list("/containers/json");
  }

  /** All containers that do not run, as summaries. */
  async notRunningContainers(): Promise<readonly ListedJson[]> {
    return await this.#list("/containers/json?", { all: true, filters: NOT_RUNNING_FILTER });
  }

  /** Containers that are not running, as summaries: the newest, of many. */
  async stoppedContainers(): Promise<readonly ListedJson[]> {
    const options = { all: true, limit: LIMITS.stoppedContainers, filters: STOPPED_FILTER };
    return await this.#list("/containers/json?", options);
  }

  /** Undefined if there is no such container. */
  async container(id: string): Promise<ContainerJson | undefined> {
    return await orUndefined(this.#get<ContainerJson>(`/containers/${id}/json`, LIMITS.inspectMs));
  }

  async network(id: string): Promise<NetworkJson | undefined> {
    return await orUndefined(this.#get<NetworkJson>(`/networks/${id}`, LIMITS.inspectMs));
  }

  /** The services and tasks of a swarm network, as gossip has them on this machine; undefined without such a network. */
  async swarmNetwork(id: string): Promise<VerboseNetworkJson | undefined> {
    return await this.#getLimited(`/networks/${encodeURIComponent(id)}?`, [404], { verbose: true });
  }

  /** Undefined unless this engine is a manager of a swarm. */
  async swarmServices(): Promise<readonly ServiceJson[] | undefined> {
    return await this.#getLimited("/services", [406, 503]);
  }

  /** All networks, without their containers. */
  async networks(): Promise<readonly NetworkJson[]> {
    return await this.#list("/networks");
  }

  /** An image by its id; undefined if it is gone. Engines without the parameter "platform" ignore it. */
  async image(id: string, platform?: ImagePlatform): Promise<ImageJson | undefined> {
    const options = platform === undefined ? {} : { platform: JSON.stringify(platform) };
    const path = `/images/${id}/json${platform === undefined ? "" : "?"}`;
    return await orUndefined(this.#get<ImageJson>(path, LIMITS.inspectMs, undefined, options));
  }

  /** Streams events from now on, until the engine or `signal` ends the stream. */
  async events(signal: AbortSignal): Promise<AsyncIterable<EngineEvent>> {
    const options = { filters: EVENT_FILTER };
    return parseEvents(await this.#dial({ path: "/events?", abortSignal: signal, options, isStream: true }));
  }

  /** The tasks that should run; undefined unless this engine is a manager. */
  async swarmTasks(): Promise<readonly TaskJson[] | undefined> {
    const filters = JSON.stringify({ "desired-state": ["running"] });
    return await this.#getLimited("/tasks?", [406, 503], { filters });
  }

  /** The addresses of the other managers of its swarm, as this engine knows them. */
  async swarmManagers(): Promise<readonly string[]> {
    const { Swarm: swarm } = await this.#get<InfoJson>("/info", LIMITS.listMs);
    const addresses = (swarm?.RemoteManagers ?? []).flatMap(({ Addr: text = "" }) => hostOf(text) ?? []);
    return addresses.filter((each) => each !== swarm?.NodeAddr);
  }

  async #getLimited<T>(path: string, notHere: readonly number[], options: object = {}): Promise<T | undefined> {
    return await this.#explained(this.#readLimited<T>(path, notHere, options));
  }

  /**
   * Reads up to a limit what may be long because of what other machines sent the engine. With a status of `notHere` the
   * engine says that it has no such thing; then this returns undefined.
   */
  async #readLimited<T>(path: string, notHere: readonly number[], options: object): Promise<T | undefined> {
    const abortSignal = AbortSignal.timeout(LIMITS.inspectMs);
    const statusCodes = Object.fromEntries([200, ...notHere].map((status) => [status, true]));
    const reply = await this.#call<IncomingMessage>({ path, abortSignal, options, statusCodes, isStream: true });
    const bytes = new ReplyBytes(LIMITS.swarmListBytes);
    for await (const piece of addAbortSignal(abortSignal, reply) as AsyncIterable<Buffer>) {
      if (!bytes.push(piece)) throw new Error(`the reply to ${path} is over ${LIMITS.swarmListBytes} bytes`);
    }
    return reply.statusCode === 200 ? (JSON.parse(bytes.take()) as T) : undefined;
  }

  async #get<T>(path: string, timeoutMs: number, signal?: AbortSignal, options: object = {}): Promise<T> {
    const timeout = AbortSignal.timeout(timeoutMs);
    const abortSignal = signal === undefined ? timeout : AbortSignal.any([timeout, signal]);
    return await this.#dial({ path, abortSignal, options });
  }

  /** Reads it in slices: that of a thousand containers takes milliseconds. */
  async #list<T>(path: string, options: object = {}): Promise<readonly T[]> {
    const abortSignal = AbortSignal.timeout(LIMITS.listMs);
    const reply = await this.#dial<IncomingMessage>({ path, abortSignal, options, isStream: true });
    return (await this.#explained(
      readJsonList(addAbortSignal(abortSignal, reply.setEncoding("utf8"))),
    )) as readonly T[];
  }

  async #dial<T>(request: Omit<ModemRequest, "method" | "statusCodes">): Promise<T> {
    return await this.#explained(this.#call<T>({ ...request, statusCodes: STATUS_CODES }));
  }

  async #call<T>(request: Omit<ModemRequest, "method">): Promise<T> {
    return await new Promise<T>((resolve, reject) => {
      this.#modem.dial({ ...request, method: "GET" }, (error, body) =>
        error === null ? resolve(body as T) : reject(error),
      );
    });
  }

  /** Converts errors into Faults that mention the socket. */
  async #explained<T>(call: Promise<T>): Promise<T> {
    try {
      return await call;
    } catch (error) {
      throw engineFault(error, this.#socketPath);
    }
  }
}

async function* parseEvents(stream: NodeJS.ReadableStream): AsyncGenerator<EngineEvent> {
  for await (const line of createInterface({ input: stream, crlfDelay: Infinity })) {
    if (line.trim() === "") continue;
    yield JSON.parse(line) as EngineEvent;
  }
}

async function orUndefined<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (codeOf(error) === "ENGINE_NOT_FOUND") return undefined;
    throw error;
  }
}

/** Reads ADDRESS:PORT, or [ADDRESS]:PORT. */
function hostOf(text: string): string | undefined {
  return /^\[?([0-9a-f.:]+?)\]?:\d+$/i.exec(text)?.[1];
}
