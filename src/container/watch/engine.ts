/**
 * Engine: the calls of the engine's API that dns11 makes, each with a time limit. Of dockerode they need its HTTP client, the
 * modem; the bundle leaves out the rest. A response is read as it arrives, in steps between which queries are answered, and
 * only what is needed of it is kept: an image's labels and environment can have hundreds of megabytes.
 */
import type { IncomingMessage } from "node:http";
import { addAbortSignal } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

import Dockerode from "dockerode";

import { LIMITS } from "../../base/limits.ts";
import { codeOf, engineFault } from "../../base/lib/fault.ts";
import { JsonScanner, type Shape } from "../../base/lib/json-scanner.ts";
import { ownSlice } from "../../base/lib/slices.ts";
import { LabelKeys } from "../facts/label-keys.ts";
import {
  type ContainerJson,
  EVENT_SHAPE,
  type EngineEvent,
  INFO_SHAPE,
  type ImageJson,
  type ImagePlatform,
  type InfoJson,
  type ListedJson,
  type NetworkJson,
  VERSION_SHAPE,
  type VersionJson,
  engineShapes,
} from "./engine-json.ts";

export interface EngineInfo {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly majorVersion: number;
  readonly apiVersion: string;
  readonly isRootless: boolean;
}

/**
 * Events that change names, addresses or namespaces, and whether somebody ended a container; the engine does not send others (exec, attach). Each list is a stream
 * of its own: events of containers have all of their labels, and those of networks must not wait behind them.
 */
const EVENT_FILTERS = [
  {
    type: ["container"],
    event: ["create", "start", "kill", "die", "destroy", "rename", "pause", "unpause", "health_status"],
  },
  { type: ["network"], event: ["create", "connect", "disconnect", "destroy", "remove"] },
];

const STOPPED = ["created", "exited", "dead"];
const STOPPED_FILTER = JSON.stringify({ status: STOPPED });
const NOT_RUNNING_FILTER = JSON.stringify({ status: [...STOPPED, "restarting", "removing"] });

interface Modem {
  dial(request: ModemRequest, done: (error: unknown, body: unknown) => void): void;
}

interface ModemRequest {
  readonly path: string;
  readonly method: "GET";
  readonly abortSignal: AbortSignal;
  /** Every other status is an error. */
  readonly statusCodes: Readonly<Record<number, boolean>>;
  readonly options: object;
  /** The body is the reply's stream, not its JSON. */
  readonly isStream: true;
}

export interface EngineRequest {
  /** Ends with a question mark where `options` are its parameters. */
  readonly path: string;
  readonly shape: Shape;
  readonly options?: object;
  /** How long the engine may be silent. */
  readonly silentMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** With these statuses the engine says that it has no such thing. */
  readonly notHere?: readonly number[];
  /** Bytes that may be kept of all of it. */
  readonly bytesMax?: number;
  /** The container whose response it is. */
  readonly containerId?: string | undefined;
}

/** Runs a step of reading what the engine says of a container. */
type ReadStep = (containerId: string, step: () => void) => void;

/** A question whether it is there. */
interface Ping {
  readonly startMs: number;
  readonly end: Promise<void>;
  isOver: boolean;
}

/** Bytes that are read between two looks at the clock, and how long other work waits. */
const PIECE_BYTES = 16_384;
const STEP_MS = 1;
/** The modem prefers DOCKER_HOST to a socket unless it is told that there is no other host. */
const NO_OTHER_HOST = { host: undefined, protocol: "http" };

export class Engine {
  readonly #modem: Modem;
  readonly #socketPath: string;
  /** What is read of labels. */
  readonly labels = new LabelKeys();
  readonly #shapes = engineShapes(this.labels);
  readStep: ReadStep = (_id, step) => step();

  #ping: Ping | undefined;

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
    this.#modem = new Dockerode({ socketPath, ...(NO_OTHER_HOST as object) }).modem;
  }

  async describe(signal?: AbortSignal): Promise<EngineInfo> {
    const [version, info] = await Promise.all([
      this.#get<VersionJson>({ path: "/version", shape: VERSION_SHAPE, signal }),
      this.#get<InfoJson>({ path: "/info", shape: INFO_SHAPE, silentMs: LIMITS.listMs, signal }),
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

  /**
   * How long it has left unanswered what dockerd answers without any lock of its own: it hangs. Undefined if it answers within `waitMs`, or
   * is not there at all. Who waits shares one question, which stays open while it hangs.
   */
  async silentMs(waitMs: number = LIMITS.engineSilentMs): Promise<number | undefined> {
    this.#ping ??= this.#openPing();
    const ping = this.#ping;
    const leftMs = ping.startMs + waitMs - performance.now();
    await Promise.race([ping.end, sleep(Math.max(0, leftMs), undefined, { ref: false })]);
    return ping.isOver ? undefined : performance.now() - ping.startMs;
  }

  #openPing(): Ping {
    const ping = { startMs: performance.now(), end: Promise.resolve(), isOver: false };
    ping.end = (async (): Promise<void> => {
      try {
        const reply = await this.#dial({ path: "/_ping", shape: {} }, new AbortController().signal);
        reply.resume();
      } catch {
        // It has ended, which whoever asks it something else learns.
      }
      ping.isOver = true;
      this.#ping = undefined;
    })();
    return ping;
  }

  /** The running containers, as summaries. */
  async containers(): Promise<readonly ListedJson[]> {
    return await this.#list("/containers/json", this.#shapes.listed);
  }

  /** All containers that do not run, as summaries. */
  async notRunningContainers(): Promise<readonly ListedJson[]> {
    return await this.#list("/containers/json?", this.#shapes.listed, { all: true, filters: NOT_RUNNING_FILTER });
  }

  /** Containers that are not running, as summaries: the newest, of many. */
  async stoppedContainers(): Promise<readonly ListedJson[]> {
    const options = { all: true, limit: LIMITS.stoppedContainers, filters: STOPPED_FILTER };
    return await this.#list("/containers/json?", this.#shapes.listed, options);
  }

  /** Undefined if there is no such container. */
  async container(id: string): Promise<ContainerJson | undefined> {
    const request = { path: `/containers/${id}/json`, shape: this.#shapes.container, containerId: id };
    return await orUndefined(this.#get<ContainerJson>(request));
  }

  async network(id: string): Promise<NetworkJson | undefined> {
    return await orUndefined(this.#get<NetworkJson>({ path: `/networks/${id}`, shape: this.#shapes.network }));
  }

  /** What a feature reads; undefined where the engine says by a status of `notHere` that it has no such thing. */
  async readOne<T>(request: EngineRequest): Promise<T | undefined> {
    const [value] = await this.#values<T>(request);
    return value;
  }

  /** A list, in the same way. */
  async readList<T>(request: EngineRequest): Promise<readonly T[] | undefined> {
    let isHere = true;
    const list = await this.#values<T>(request, true, () => (isHere = false));
    return isHere ? list : undefined;
  }

  /** All networks, without their containers. */
  async networks(): Promise<readonly NetworkJson[]> {
    return await this.#list("/networks", this.#shapes.network);
  }

  /** An image by its id, for a container; undefined if it is gone. Engines without the parameter "platform" ignore it. */
  async image(id: string, platform?: ImagePlatform, containerId?: string): Promise<ImageJson | undefined> {
    const options = platform === undefined ? {} : { platform: JSON.stringify(platform) };
    const path = `/images/${id}/json${platform === undefined ? "" : "?"}`;
    return await orUndefined(this.#get<ImageJson>({ path, shape: this.#shapes.image, options, containerId }));
  }

  /** Streams events from now on, until the engine or `signal` ends the stream. */
  async events(signal: AbortSignal): Promise<AsyncIterable<EngineEvent>> {
    const replies = EVENT_FILTERS.map(async (filters) => {
      const request = { path: "/events?", options: { filters }, shape: EVENT_SHAPE };
      return this.#eventsIn(await this.#explained(this.#dial(request, signal)));
    });
    return merged(await Promise.all(replies));
  }

  async #list<T>(path: string, shape: Shape, options: object = {}): Promise<readonly T[]> {
    return await this.#values<T>({ path, shape, options, silentMs: LIMITS.listMs }, true);
  }

  async #get<T>(request: EngineRequest): Promise<T> {
    const [value] = await this.#values<T>(request);
    return value as T;
  }

  async #values<T>(request: EngineRequest, isList = false, onNotHere?: () => void): Promise<T[]> {
    return await this.#explained(this.#read<T>(request, isList, onNotHere));
  }

  async #read<T>(request: EngineRequest, isList: boolean, onNotHere?: () => void): Promise<T[]> {
    const { path, shape, silentMs = LIMITS.inspectMs, signal, bytesMax = LIMITS.engineReplyBytes } = request;
    const silence = new AbortController();
    const timer = setTimeout(() => silence.abort(timedOut(path, silentMs)), silentMs).unref();
    const deadlineMs = performance.now() + silentMs * LIMITS.engineReadTimes;
    const values: T[] = [];
    try {
      const end = signal === undefined ? silence.signal : AbortSignal.any([silence.signal, signal]);
      const reply = await this.#dial(request, end);
      if (reply.statusCode !== 200) {
        reply.resume();
        onNotHere?.();
        return values;
      }
      const scanner = scannerOf(shape, isList, (value) => values.push(value as T));
      for await (const _ of this.#steps(reply, scanner, request.containerId)) {
        timer.refresh();
        if (scanner.keptBytes > bytesMax)
          throw new Error(`what is read of the reply to ${path} is over ${bytesMax} bytes`);
        if (performance.now() > deadlineMs) throw timedOut(path, silentMs * LIMITS.engineReadTimes);
      }
      if (!scanner.isComplete || (!isList && values.length !== 1))
        throw new Error(`the reply to ${path} ends too early`);
      return values;
    } catch (error) {
      throw silence.signal.aborted ? silence.signal.reason : error;
    } finally {
      clearTimeout(timer);
    }
  }

  async *#eventsIn(reply: IncomingMessage): AsyncGenerator<EngineEvent> {
    const events: EngineEvent[] = [];
    const scanner = scannerOf(EVENT_SHAPE, false, (value) => events.push(value as EngineEvent));
    for await (const _ of this.#steps(reply, scanner, undefined)) yield* events.splice(0);
  }

  /** Has a reply scanned; yields after each step. */
  async *#steps(reply: IncomingMessage, scanner: JsonScanner, containerId: string | undefined): AsyncGenerator<void> {
    let spentMs = 0;
    for await (const chunk of reply as AsyncIterable<Buffer>) {
      for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
        const piece = chunk.subarray(at, at + PIECE_BYTES);
        const startMs = performance.now();
        if (containerId === undefined) scanner.push(piece);
        else this.readStep(containerId, () => scanner.push(piece));
        spentMs += performance.now() - startMs;
        yield;
        if (spentMs < STEP_MS) continue;
        await ownSlice();
        spentMs = 0;
      }
    }
  }

  async #dial({ path, options = {}, notHere = [] }: EngineRequest, abortSignal: AbortSignal): Promise<IncomingMessage> {
    const statusCodes = Object.fromEntries([200, ...notHere].map((status) => [status, true]));
    const reply = await new Promise<IncomingMessage>((resolve, reject) => {
      const request: ModemRequest = { path, method: "GET", options, abortSignal, statusCodes, isStream: true };
      this.#modem.dial(request, (error, body) => (error === null ? resolve(body as IncomingMessage) : reject(error)));
    });
    return addAbortSignal(abortSignal, reply);
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

/** What any of the streams has, until one of them ends. */
async function* merged<T>(streams: readonly AsyncIterable<T>[]): AsyncGenerator<T> {
  const items: T[] = [];
  const ends: Promise<void>[] = [];
  let wake = (): void => undefined;
  let isOver = false;
  for (const stream of streams)
    ends.push(
      (async (): Promise<void> => {
        for await (const item of stream) {
          items.push(item);
          wake();
        }
      })().finally(() => {
        isOver = true;
        wake();
      }),
    );
  const over = Promise.race(ends);
  // It is awaited only when everything before it has been passed on.
  over.catch(() => undefined);
  while (!isOver || items.length > 0) {
    yield* items.splice(0);
    if (!isOver && items.length === 0) await new Promise<void>((resolve) => (wake = resolve));
  }
  await over;
}

function scannerOf(shape: Shape, isList: boolean, onValue: (value: unknown) => void): JsonScanner {
  const limits = { bytesMax: LIMITS.engineValueBytes, textBytesMax: LIMITS.engineTextBytes };
  return new JsonScanner(shape, isList, limits, onValue);
}

function timedOut(path: string, ms: number): Error {
  return new Error(`no whole reply to ${path} within ${ms / 1_000} s`);
}

async function orUndefined<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (codeOf(error) === "ENGINE_NOT_FOUND") return undefined;
    throw error;
  }
}
