/**
 * Owns a client that asks one server the same question over and over, from inside a namespace, until it is told to stop, and
 * how and when each of its queries ended. It is there for as long as what happens meanwhile takes, on a busy machine as well.
 */
import { fileURLToPath } from "node:url";

import { type CommandResult, stdoutOf } from "../program/command.ts";
import type { NetworkPlace } from "../rig/netns.ts";
import { inTime, PATIENCE_MS } from "../rig/wait.ts";

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
export type QueryLoopOrder = QueryLoopOptions & { readonly forMs: number };

const PROGRAM = fileURLToPath(new URL("./query-loop-main.js", import.meta.url));
const FOR_MS_MAX = 180_000;

export class QueryLoop implements AsyncDisposable {
  readonly #ended: Promise<CommandResult>;
  #stop: () => void = () => undefined;
  #begun: () => void = () => undefined;

  private constructor(place: NetworkPlace, options: QueryLoopOptions, forMs: number) {
    const order: QueryLoopOrder = { ...options, forMs };
    this.#ended = place.enter(process.execPath, [PROGRAM, JSON.stringify(order)], {
      until: new Promise<void>((resolve) => (this.#stop = resolve)),
      onOutput: () => this.#begun(),
      timeoutMs: forMs + PATIENCE_MS,
    });
    // Whoever stops it hears of it.
    this.#ended.catch(() => undefined);
  }

  /** Resolves when the first query is on its way. */
  static async start(place: NetworkPlace, options: QueryLoopOptions, forMs = FOR_MS_MAX): Promise<QueryLoop> {
    const loop = new QueryLoop(place, options, forMs);
    const begun = new Promise<void>((resolve) => (loop.#begun = resolve));
    await inTime(Promise.race([begun, loop.#ended]), "the first query of a loop");
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
  place: NetworkPlace,
  options: QueryLoopOptions & { readonly forMs: number },
): Promise<readonly QueryEnd[]> {
  const loop = await QueryLoop.start(place, options, options.forMs);
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
