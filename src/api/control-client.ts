/**
 * Client: a running dns11, asked through its control socket. What the commands use, and what the package offers to test
 * suites.
 */
import { type IncomingMessage, request } from "node:http";

import type { CountersReport, MissedReport, QueriesReport, QueryReport } from "./queries.ts";
import type { RepairReport, Status } from "./status.ts";
import type { CacheReport, FlushReport } from "./cache.ts";
import type { Explanation, Lookup, LookupRequest, NameRequest } from "./names.ts";
import type { ReloadReport } from "./status.ts";
import type { UpstreamReport } from "./upstreams.ts";
import { Fault, codeOf } from "../base/lib/fault.ts";

/** Of the beginning of an answer, and of each piece of one that is one value; a stream may be silent as long as it likes. */
const TIMEOUT_MS = 5_000;
/** Of one that servers are asked for, whose own time is over before. */
const QUERY_TIMEOUT_MS = 120_000;

/** Which queries are wanted; all of them where nothing is said. */
export interface QueriesRequest {
  /** Its name, or the beginning of its id. */
  readonly container?: string;
  /** A pattern with `*` and `?`. */
  readonly name?: string;
  /** Response codes, with commas between them. */
  readonly rcode?: string;
  /** How many of those that are there already. */
  readonly last?: number;
}

export class ControlClient {
  readonly #path: string;

  /** `path` is that of the control socket. */
  constructor(path: string) {
    this.#path = path;
  }

  async status(): Promise<Status> {
    return (await this.#ask("GET", "/v1/status")) as Status;
  }

  /** Puts a KIND node back as it was; returns which one that is. */
  async detachNode(node: string): Promise<{ readonly name: string }> {
    return (await this.#ask("POST", "/v1/kind/detach", { node })) as { readonly name: string };
  }

  /** Serves a node again. */
  async attachNode(node: string): Promise<{ readonly name: string }> {
    return (await this.#ask("POST", "/v1/kind/attach", { node })) as { readonly name: string };
  }

  /** Has a container, by its name or id, attached anew where it has to be. */
  async repair(container: string): Promise<RepairReport> {
    return (await this.#ask("POST", "/v1/repair", { container })) as RepairReport;
  }

  /** What the containers have asked, in numbers. */
  async counters(): Promise<CountersReport> {
    return (await this.#ask("GET", "/v1/counters")) as CountersReport;
  }

  /** The last queries, oldest first. */
  async queries(wanted: QueriesRequest & { readonly since?: number } = {}): Promise<QueriesReport> {
    return (await this.#ask("GET", `/v1/queries?${parametersOf(wanted)}`)) as QueriesReport;
  }

  /** Queries as they come, until `signal`. Ends by itself only when dns11 does. */
  async *follow(wanted: QueriesRequest = {}, signal?: AbortSignal): AsyncGenerator<QueryReport | MissedReport, void> {
    const answer = await this.#open("GET", `/v1/queries?${parametersOf({ ...wanted, follow: true })}`);
    answer.socket.setTimeout(0);
    const stop = (): void => void answer.destroy();
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted === true) stop();
    try {
      if (answer.statusCode !== 200) throw this.#refusal(answer, await this.#saidIn(answer));
      for await (const line of linesOf(answer)) yield JSON.parse(line) as QueryReport | MissedReport;
    } catch (error) {
      // A stream that was cut off has ended, whoever did it.
      if (error instanceof Fault) throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
      answer.destroy();
    }
  }

  /** Asks from inside a container, as a program in there would; `rcode` is null where nobody answered. */
  async lookup(order: LookupRequest, timeoutMs = QUERY_TIMEOUT_MS): Promise<Lookup> {
    return (await this.#ask("POST", "/v1/lookup", order, timeoutMs)) as Lookup;
  }

  /** What dns11 answers a container, and why. */
  async explain(order: NameRequest): Promise<Explanation> {
    return (await this.#ask("POST", "/v1/explain", order, QUERY_TIMEOUT_MS)) as Explanation;
  }

  /** Every server that may be asked, and what is known of it. */
  async upstreams(): Promise<UpstreamReport> {
    return (await this.#ask("GET", "/v1/upstreams")) as UpstreamReport;
  }

  async cache(): Promise<CacheReport> {
    return (await this.#ask("GET", "/v1/cache")) as CacheReport;
  }

  /** Forgets what servers said of one name, or of all. */
  async flushCache(name?: string): Promise<FlushReport> {
    return (await this.#ask("POST", "/v1/cache/flush", { name })) as FlushReport;
  }

  /** Has the settings file read again, and tells what changed by it. */
  async reload(): Promise<ReloadReport> {
    return (await this.#ask("POST", "/v1/reload", undefined, QUERY_TIMEOUT_MS)) as ReloadReport;
  }

  async #ask(method: string, path: string, body?: unknown, timeoutMs = TIMEOUT_MS): Promise<unknown> {
    const answer = await this.#open(method, path, body, timeoutMs);
    const said = await this.#saidIn(answer);
    if (answer.statusCode === 200) return said;
    throw this.#refusal(answer, said);
  }

  /** undefined where nothing was said. */
  async #saidIn(answer: IncomingMessage): Promise<unknown> {
    let text;
    try {
      text = await textOf(answer);
    } catch (cause) {
      throw new Fault("CONTROL", `The dns11 at "${this.#path}" ended before it had answered`, { cause });
    }
    try {
      return JSON.parse(text || "null");
    } catch (cause) {
      throw new Fault("CONTROL", `What answers at "${this.#path}" is no dns11, or one of another kind`, { cause });
    }
  }

  async #open(method: string, path: string, body?: unknown, timeout = TIMEOUT_MS): Promise<IncomingMessage> {
    return await new Promise((resolve, reject) => {
      // An agent has a time limit of its own, for connections that it would keep.
      const options = { socketPath: this.#path, path, method, timeout, agent: false };
      const asked = request(options, resolve);
      asked.on("timeout", () => asked.destroy(new Error("no answer in time")));
      asked.on("error", (error) => reject(this.#fault(error)));
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  #refusal({ statusCode }: IncomingMessage, said: unknown): Fault {
    const { error, code, remedy } = (said ?? {}) as {
      readonly error?: string;
      readonly code?: string;
      readonly remedy?: string;
    };
    const message = error ?? `The dns11 at "${this.#path}" answered ${statusCode}`;
    return new Fault(code ?? "CONTROL", message, remedy === undefined ? {} : { remedy });
  }

  #fault(cause: Error): Fault {
    const code = codeOf(cause);
    if (code === "ENOENT" || code === "ECONNREFUSED") {
      return new Fault("NOT_RUNNING", `No dns11 is running for this engine (nobody at "${this.#path}")`, {
        remedy: "Start it with: dns11 run",
      });
    }
    const isDenied = code === "EACCES";
    return new Fault(isDenied ? "CONTROL_PERMISSION" : "CONTROL", `Cannot ask the dns11 at "${this.#path}"`, {
      cause,
      ...(isDenied && { remedy: "Root, and the group docker where it exists, may ask." }),
    });
  }
}

function parametersOf(wanted: object): string {
  const said = Object.entries(wanted).filter(([, value]) => value !== undefined);
  return new URLSearchParams(said.map(([key, value]): [string, string] => [key, String(value)])).toString();
}

async function textOf(answer: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

/** Whole lines alone: what is cut off says nothing. */
async function* linesOf(answer: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of answer) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
