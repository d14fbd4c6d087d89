/**
 * Client that repeats one query to one server from inside a namespace until it is stopped, and the outcome of each
 * query. It runs as long as the event under test takes, on a busy machine as well.
 */
import { fileURLToPath } from "node:url";

import { type CommandResult, stdoutOf } from "../program/command.ts";
import type { NetworkContext } from "../rig/netns.ts";
import { inTime, WAIT_TIMEOUT_MS } from "../rig/wait.ts";

export interface QueryLoopOptions {
  readonly name: string;
  /** Query another name below it each time, which no cache knows. */
  readonly isEachNew?: boolean | undefined;
  /** Default: 127.0.0.11. */
  readonly server?: string | undefined;
  readonly port?: number | undefined;
  readonly type?: "A" | "AAAA" | undefined;
  readonly perSecond?: number | undefined;
  /** Use one socket for all queries: with this port, or with any. Default: a new socket for each. */
  readonly sourcePort?: number | "any" | undefined;
}

export interface QueryEnd {
  /** Send time in milliseconds since the epoch. */
  readonly atMs: number;
  readonly tookMs: number;
  /**
   * "NOERROR" with an answer and "NODATA" without, any other rcode by its name; "refused" (closed port), "unreachable",
   * "timeout", or another error code of the socket.
   */
  readonly outcome: string;
}

/** Argument of the program; forMs bounds a loop that is never stopped. */
export type QueryLoopRequest = QueryLoopOptions & { readonly forMs: number };

const PROGRAM = fileURLToPath(new URL("./query-loop-main.js", import.meta.url));
const FOR_MS_MAX = 180_000;

export class QueryLoop implements AsyncDisposable {
  readonly #ended: Promise<CommandResult>;
  #stop: () => void = () => undefined;
  #onStarted: () => void = () => undefined;

  private constructor(context: NetworkContext, options: QueryLoopOptions, forMs: number) {
    const request: QueryLoopRequest = { ...options, forMs };
    this.#ended = context.enter(process.execPath, [PROGRAM, JSON.stringify(request)], {
      until: new Promise<void>((resolve) => (this.#stop = resolve)),
      onOutput: () => this.#onStarted(),
      timeoutMs: forMs + WAIT_TIMEOUT_MS,
    });
    // stop() reports the error.
    this.#ended.catch(() => undefined);
  }

  /** Resolves when the first query has been sent. */
  static async start(context: NetworkContext, options: QueryLoopOptions, forMs = FOR_MS_MAX): Promise<QueryLoop> {
    const loop = new QueryLoop(context, options, forMs);
    const started = new Promise<void>((resolve) => (loop.#onStarted = resolve));
    await inTime(Promise.race([started, loop.#ended]), "the first query of a loop");
    return loop;
  }

  /** Stops sending; returns the queries in the order in which they were sent, all of them ended. */
  async stop(): Promise<readonly QueryEnd[]> {
    this.#stop();
    return await this.ends();
  }

  /** Waits for the end of its time and returns the same. */
  async ends(): Promise<readonly QueryEnd[]> {
    const text = stdoutOf(await this.#ended, "the query loop");
    return JSON.parse(text.slice(text.indexOf("["))) as QueryEnd[];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop();
    await this.#ended;
  }
}

/** Runs for a fixed time. */
export async function queryLoop(
  context: NetworkContext,
  options: QueryLoopOptions & { readonly forMs: number },
): Promise<readonly QueryEnd[]> {
  const loop = await QueryLoop.start(context, options, options.forMs);
  return await loop.ends();
}

/** Counts by outcome, such as { NOERROR: 400 }. */
export function outcomesOf(ends: readonly QueryEnd[], sinceMs = 0): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { atMs, outcome } of ends) {
    if (atMs >= sinceMs) counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}

/**
 * UDP packets that sockets of a namespace had no room for so far, also those that are closed by now. On a busy machine a
 * resolver does not read in time, and nobody can answer what the kernel has dropped.
 */
export async function droppedIn(context: NetworkContext): Promise<number> {
  const text = stdoutOf(await context.enter("cat", ["/proc/net/snmp"]), "counters of UDP");
  const [names = [], values = []] = [...text.matchAll(/^Udp: (.*)$/gm)].map(([, line = ""]) => line.split(" "));
  return Number(values[names.indexOf("RcvbufErrors")]);
}

/** Failed queries, for messages: "refused at +3 ms". */
export function failuresAfter(ends: readonly QueryEnd[], momentMs: number): string[] {
  return ends
    .filter(({ atMs, outcome }) => atMs > momentMs && outcome !== "NOERROR")
    .map(({ atMs, outcome }) => `${outcome} at +${atMs - momentMs} ms`);
}
