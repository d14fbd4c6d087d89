/**
 * Relay: passes a request of the page on to the control socket, and its response back. Only the listed routes exist; sizes, the number
 * of requests and of streams, and the time that a reader may stall are bounded.
 */
import { startRemedy } from "../../api/state-paths.ts";
import { type IncomingMessage, type ServerResponse, request } from "node:http";

import { Fault, codeOf } from "../../base/lib/fault.ts";

const READ =
  "status containers networks matrix names failures upstreams history cache cache/entries counters events queries egress";
/** These routes are no GET, and change nothing. */
export const RELAYED: ReadonlySet<string> = new Set([
  ...READ.split(" ").map((name) => `GET /v1/${name}`),
  "POST /v1/explain",
  "POST /v1/lookup",
]);

const QUERY_CHARS_MAX = 2_048;
/** Requests at the same time: the control socket serves other commands, too. */
const REQUESTS_MAX = 16;
const STREAMS_MAX = 8;
/** A reader that takes nothing for so long has gone. */
const STALL_MS = 30_000;

export interface RelayLimits {
  readonly requests?: number;
  readonly streams?: number;
  readonly stallMs?: number;
}

interface RelayedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly body: Buffer;
}

export class Relay {
  readonly #socketPath: string;
  readonly #limits: Required<RelayLimits>;
  #requests = 0;
  #streams = 0;

  constructor(socketPath: string, limits: RelayLimits = {}) {
    this.#socketPath = socketPath;
    this.#limits = { requests: REQUESTS_MAX, streams: STREAMS_MAX, stallMs: STALL_MS, ...limits };
  }

  /** Resolves when the response is complete, or its reader has gone. Throws a Fault if nothing was sent. */
  async pass(asked: RelayedRequest, outgoing: ServerResponse): Promise<void> {
    if (asked.query.length > QUERY_CHARS_MAX) {
      throw new Fault("TOO_LONG", `Parameters too long: the limit is ${QUERY_CHARS_MAX} characters`);
    }
    const parameters = new URLSearchParams(asked.query);
    const isStream = parameters.get("follow") === "true";
    this.#checkRoom(isStream);
    this.#requests++;
    if (isStream) this.#streams++;
    try {
      const answer = await this.#ask(asked, parameters, outgoing);
      outgoing.writeHead(answer.statusCode ?? 502, { "content-type": answer.headers["content-type"] ?? "text/plain" });
      outgoing.flushHeaders();
      await copyAll(answer, outgoing, this.#limits.stallMs);
    } finally {
      this.#requests--;
      if (isStream) this.#streams--;
    }
  }

  #checkRoom(isStream: boolean): void {
    const { requests, streams } = this.#limits;
    if (isStream ? this.#streams < streams : this.#requests - this.#streams < requests) return;
    throw new Fault("UI_BUSY", "Too many requests at the same time", {
      remedy: "Close other tabs with this page, or start dns11 ui again.",
    });
  }

  async #ask(
    { method, path, body }: RelayedRequest,
    parameters: URLSearchParams,
    outgoing: ServerResponse,
  ): Promise<IncomingMessage> {
    const query = parameters.size === 0 ? "" : `?${parameters.toString()}`;
    return await new Promise((resolve, reject) => {
      const options = { socketPath: this.#socketPath, path: `${path}${query}`, method, agent: false };
      const asking = request(options, resolve);
      asking.on("error", (cause) => reject(notRunning(cause)));
      outgoing.once("close", () => asking.destroy());
      asking.end(body.length === 0 ? undefined : body);
    });
  }
}

/** Copies with backpressure up to the daemon, which then counts what the reader misses. */
async function copyAll(answer: IncomingMessage, outgoing: ServerResponse, stallMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    let stall: NodeJS.Timeout | undefined;
    answer.on("data", (chunk: Buffer) => {
      if (outgoing.write(chunk)) return;
      answer.pause();
      stall = setTimeout(() => outgoing.destroy(), stallMs).unref();
    });
    outgoing.on("drain", () => {
      clearTimeout(stall);
      answer.resume();
    });
    answer.on("end", () => outgoing.end());
    // A stream that breaks off has ended.
    answer.on("error", () => outgoing.destroy());
    outgoing.on("error", () => undefined);
    outgoing.on("close", () => {
      clearTimeout(stall);
      answer.destroy();
      resolve();
    });
  });
}

function notRunning(cause: Error): Fault {
  if (codeOf(cause) === "EACCES") {
    return new Fault("CONTROL_PERMISSION", "Cannot connect to dns11", {
      remedy: "Run dns11 ui as root or as a member of the group docker.",
    });
  }
  return new Fault("NOT_RUNNING", "dns11 is not running for this engine", { remedy: startRemedy("dns11 run") });
}
