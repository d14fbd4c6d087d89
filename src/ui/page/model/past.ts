/**
 * Past: how far back the page looks, and what there was in that time as bars: queries, and those that failed. Times are those of the
 * machine that dns11 runs on: the reader's clock may be another one.
 */
import type { HistoryReport } from "../../../api/history.ts";

export type RangeKey = "minutes" | "hour" | "all";

interface Range {
  readonly key: RangeKey;
  readonly label: string;
  /** Infinity for all that is kept. */
  readonly ms: number;
}

const MINUTE_MS = 60_000;
/** As many as can be told apart. */
const BARS_MAX = 96;

export const RANGES: readonly Range[] = [
  { key: "minutes", label: "5 minutes", ms: 5 * MINUTE_MS },
  { key: "hour", label: "1 hour", ms: 60 * MINUTE_MS },
  { key: "all", label: "All kept", ms: Infinity },
];

export interface Bar {
  readonly fromMs: number;
  readonly queries: number;
  /** They are among the queries. */
  readonly failures: number;
}

export interface Past {
  /** The oldest first. */
  readonly bars: readonly Bar[];
  readonly everyMs: number;
  readonly untilMs: number;
  readonly queries: number;
  readonly failures: number;
}

/** Nothing older is shown; -Infinity while nobody knows what time it is there. */
export function sinceMs(history: HistoryReport | null, range: RangeKey): number {
  const until = history?.until ?? null;
  const { ms = Infinity } = RANGES.find(({ key }) => key === range) ?? {};
  return until === null ? -Infinity : Date.parse(until) - ms;
}

/** null before the first sample. */
export function pastOf(history: HistoryReport | null, range: RangeKey): Past | null {
  if (history === null) return null;
  const { everyMs, until, rates, minutes } = history;
  if (until === null || minutes.until === null) return null;
  const failed = rates.nxdomain.map((count, index) => count + (rates.errors[index] ?? 0));
  if (range === "minutes") return pastFrom(rates.queries, failed, everyMs, Date.parse(until));
  const count = range === "hour" ? 60 : Infinity;
  const [queries, failures] = [minutes.queries.slice(-count), minutes.failures.slice(-count)];
  const each = Math.ceil(queries.length / BARS_MAX);
  return pastFrom(inParts(queries, each), inParts(failures, each), each * MINUTE_MS, Date.parse(minutes.until));
}

function pastFrom(queries: readonly number[], failures: readonly number[], everyMs: number, untilMs: number): Past {
  const bars = queries.map((count, index) => ({
    fromMs: untilMs - (queries.length - index) * everyMs,
    queries: count,
    failures: failures[index] ?? 0,
  }));
  return { bars, everyMs, untilMs, queries: sum(queries), failures: sum(failures) };
}

/** Sums of so many each, counted from the end; the first one may be of fewer. */
function inParts(counts: readonly number[], each: number): number[] {
  const parts: number[] = [];
  for (let end = counts.length; end > 0; end -= each) parts.unshift(sum(counts.slice(Math.max(0, end - each), end)));
  return parts;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, each) => total + each, 0);
}
