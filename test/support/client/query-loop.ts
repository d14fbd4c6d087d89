/**
 * Owns a client that asks one server the same question over and over, from inside a namespace, until it is told to stop, and
 * how and when each of its queries ended. It is there for as long as what happens meanwhile takes, on a busy machine as well.
 */
import { fileURLToPath } from "node:url";

import { type CommandResult, stdoutOf } from "../program/command.ts";
import type { NetworkContext } from "../rig/netns.ts";
import { inTime, WAIT_TIMEOUT_MS } from "../rig/wait.ts";

export interface QueryLoopOptions {
  readonly name: string;
  /** Unless told otherwise 127.0.0.11. */
  readonly server?: string | undefined;
  readonly port?: number | undefined;
  readonly type?: "A" | "AAAA" | undefined;
  readonly perSecond?: number | undefined;
  /** One socket for all queries: with this port, or with any. Otherwise each has its own. */
  readonly sourcePort?: number | "any" | undefined;
}

export interface QueryEnd {
  /** The milliseconds of the epoch at which it was sent. */
  readonly atMs: number;
  readonly tookMs: number;
  /**
   * "NOERROR" with an answer and "NODATA" without, any other rcode by its name; "refused" (nobody listens),
   * "unreachable", "timeout"; or whatever else the socket said.
   */
  readonly outcome: string;
}

/** How the program is told what to do; forMs bounds a loop that nobody stops. */
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
    // Whoever stops it hears of it.
    this.#ended.catch(() => undefined);
  }

  /** Resolves when the first query is on its way. */
  static async start(context: NetworkContext, options: QueryLoopOptions, forMs = FOR_MS_MAX): Promise<QueryLoop> {
    const loop = new QueryLoop(context, options, forMs);
    const started = new Promise<void>((resolve) => (loop.#onStarted = resolve));
    await inTime(Promise.race([started, loop.#ended]), "the first query of a loop");
    return loop;
  }

  /** In the order in which they were sent; every one of them has ended. */
  async stop(): Promise<readonly QueryEnd[]> {
    this.#stop();
    return await this.ends();
  }

  /** The same when its time is over. */
  async ends(): Promise<readonly QueryEnd[]> {
    const text = stdoutOf(await this.#ended, "the query loop");
    return JSON.parse(text.slice(text.indexOf("["))) as QueryEnd[];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop();
    await this.#ended;
  }
}

/** For so long, whatever happens. */
export async function queryLoop(
  context: NetworkContext,
  options: QueryLoopOptions & { readonly forMs: number },
): Promise<readonly QueryEnd[]> {
  const loop = await QueryLoop.start(context, options, options.forMs);
  return await loop.ends();
}

/** How many ended how: { NOERROR: 400 }. */
export function outcomesOf(ends: readonly QueryEnd[], sinceMs = 0): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { atMs, outcome } of ends) {
    if (atMs >= sinceMs) counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}

/** Those that were not answered, for messages: "refused at +3 ms". */
export function failuresAfter(ends: readonly QueryEnd[], momentMs: number): string[] {
  return ends
    .filter(({ atMs, outcome }) => atMs > momentMs && outcome !== "NOERROR")
    .map(({ atMs, outcome }) => `${outcome} at +${atMs - momentMs} ms`);
}
