/**
 * Engine: the calls of the engine's API that dns11 makes, each with a timeout.
 */
import type { IncomingMessage } from "node:http";
import { createInterface } from "node:readline";
import { addAbortSignal } from "node:stream";

import type Dockerode from "dockerode";

import { LIMITS } from "../../base/limits.ts";
import { codeOf } from "../../base/lib/fault.ts";
import { readJsonList } from "../../base/lib/json-pieces.ts";
import { engineFault } from "../../base/model/engine-fault.ts";
import type { ContainerJson, ImageJson, ImagePlatform, ListedJson, NetworkJson } from "./engine-json.ts";
import { type Modem, type ModemRequest, openModem } from "./light-dockerode.ts";
import { limitedGet } from "./limited-get.ts";
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

/** The only successful status; the modem turns every other into an error. */
const STATUS_CODES = { 200: true };

export class Engine {
  readonly #modem: Modem;
  readonly #socketPath: string;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
    this.#modem = openModem(socketPath);
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
    return await this.#getLimited(`/networks/${encodeURIComponent(id)}?verbose=true`, [404]);
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
    const filters = encodeURIComponent(JSON.stringify({ "desired-state": ["running"] }));
    return await this.#getLimited(`/tasks?filters=${filters}`, [406, 503]);
  }

  /** The addresses of the other managers of its swarm, as this engine knows them. */
  async swarmManagers(): Promise<readonly string[]> {
    const { Swarm: swarm } = await this.#get<InfoJson>("/info", LIMITS.listMs);
    const addresses = (swarm?.RemoteManagers ?? []).flatMap(({ Addr: text = "" }) => hostOf(text) ?? []);
    return addresses.filter((each) => each !== swarm?.NodeAddr);
  }

  async #getLimited<T>(path: string, notHere: readonly number[]): Promise<T | undefined> {
    const limits = { timeoutMs: LIMITS.inspectMs, bytesMax: LIMITS.swarmListBytes };
    return await this.#explained(limitedGet<T>({ socketPath: this.#socketPath, path, notHere, ...limits }));
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
    return await this.#explained(
      new Promise<T>((resolve, reject) => {
        this.#modem.dial({ ...request, method: "GET", statusCodes: STATUS_CODES }, (error, body) =>
          error === null ? resolve(body as T) : reject(error),
        );
      }),
    );
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

/** Of ADDRESS:PORT, or [ADDRESS]:PORT. */
function hostOf(text: string): string | undefined {
  return /^\[?([0-9a-f.:]+?)\]?:\d+$/i.exec(text)?.[1];
}
