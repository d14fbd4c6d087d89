/**
 * Load of queries for ever new names, which no cache can answer, sent from a container's namespace, and their outcomes:
 * for tests of upstream servers that fail under load.
 */
import { fileURLToPath } from "node:url";

import { stdoutOf } from "../program/command.ts";
import type { NetworkContext } from "../rig/netns.ts";

export interface StormOptions {
  /** The names are q1.SUFFIX, q2.SUFFIX ... */
  readonly suffix: string;
  readonly load:
    | { readonly count: number; readonly atOnce: number }
    | { readonly perSecond: number; readonly forMs: number };
  /** Port of 127.0.0.11. */
  readonly port?: number;
}

export interface StormReport {
  readonly sent: number;
  /** Counts by outcome: an address, an rcode, "timeout" after five seconds, or an error of the socket. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Latencies of all queries, however they ended. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Queries that took longer than SLOW_MS, and when the last one of them was sent, from the start on. */
  readonly slow: { readonly count: number; readonly untilMs: number };
}

export const SLOW_MS = 100;

const PROGRAM = fileURLToPath(new URL("./storm-main.js", import.meta.url));
/** Time to start, to exit, and for the last query. */
const MARGIN_MS = 20_000;
/** A query takes five seconds at most. */
const QUESTION_MS = 5_000;

export async function storm(context: NetworkContext, options: StormOptions): Promise<StormReport> {
  const { load } = options;
  const lastsMs = "forMs" in load ? load.forMs : Math.ceil(load.count / load.atOnce) * QUESTION_MS;
  const result = await context.enter(process.execPath, [PROGRAM, JSON.stringify(options)], {
    timeoutMs: lastsMs + MARGIN_MS,
  });
  return JSON.parse(stdoutOf(result, "the storm")) as StormReport;
}

/** Outcomes other than these addresses: "SERVFAIL: 3, timeout: 1". */
export function failuresOf({ outcomes }: StormReport, ...addresses: readonly string[]): string {
  const others = Object.entries(outcomes).filter(([outcome]) => !addresses.includes(outcome));
  return others.map(([outcome, count]) => `${outcome}: ${count}`).join(", ");
}

export function readableStorm({ sent, outcomes, p50Ms, p99Ms, maxMs, slow }: StormReport): string {
  const ends = Object.entries(outcomes).map(([outcome, count]) => `${outcome}: ${count}`);
  const late = slow.count === 0 ? "" : `, ${slow.count} over ${SLOW_MS} ms, sent in the first ${slow.untilMs} ms`;
  return `${sent} sent (${ends.join(", ")}), p50 ${p50Ms} ms, p99 ${p99Ms} ms, last ${maxMs} ms${late}`;
}
