// Owns a client that asks one server the same question over and over, from inside a namespace, and how and when each of
// its queries ended. Beside load.ts it can ask any server, and keeps apart the ways in which a query is not answered.

import { fileURLToPath } from "node:url";

import { stdoutOf } from "../program/command.ts";
import type { NetworkPlace } from "../rig/netns.ts";

export type QueryLoopOptions = {
  readonly server: string;
  readonly name: string;
  readonly forMs: number;
  readonly port?: number | undefined;
  readonly type?: "A" | "AAAA" | undefined;
  readonly perSecond?: number | undefined;
  // One socket for all queries, with this port; otherwise each has its own.
  readonly sourcePort?: number | undefined;
};

export type QueryEnd = {
  // The milliseconds of the epoch at which it was sent.
  readonly atMs: number;
  readonly tookMs: number;
  // "NOERROR" with an answer and "NODATA" without, any other rcode by its name; "refused" (nobody listens),
  // "unreachable", "timeout"; or whatever else the socket said.
  readonly outcome: string;
};

const PROGRAM = fileURLToPath(new URL("./query-loop-main.js", import.meta.url));
// What starting, ending and the last query may take.
const MARGIN_MS = 20_000;

// In the order in which they were sent.
export async function queryLoop(place: NetworkPlace, options: QueryLoopOptions): Promise<readonly QueryEnd[]> {
  const result = await place.enter(process.execPath, [PROGRAM, JSON.stringify(options)], {
    timeoutMs: options.forMs + MARGIN_MS,
  });
  return JSON.parse(stdoutOf(result, "the query loop")) as QueryEnd[];
}

// How many ended how: { NOERROR: 400 }.
export function outcomesOf(ends: readonly QueryEnd[], sinceMs = 0): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { atMs, outcome } of ends) {
    if (atMs >= sinceMs) counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}
