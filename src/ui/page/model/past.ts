/**
 * Past: how far back the page looks, and what there was in that time as bars: queries, and those that failed. Times are those of the
 * machine that dns11 runs on: the reader's clock may be another one.
 */
import type { HistoryReport, ServerHistory } from "../../../api/history.ts";
import type { EventReport } from "../../../api/events.ts";

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

/** The parts of a figure over time in which it is known. What is between them is idle, and nothing is drawn there. */
export interface SparkPoint {
  readonly index: number;
  readonly value: number;
}

export function runsOf(values: readonly (number | null)[]): readonly (readonly SparkPoint[])[] {
  const runs: SparkPoint[][] = [];
  for (const [index, value] of values.entries()) {
    if (value === null) continue;
    const last = runs.at(-1);
    if (last !== undefined && last.at(-1)?.index === index - 1) last.push({ index, value });
    else runs.push([{ index, value }]);
  }
  return runs;
}

/** The latency of a server that was queried; one that was not still has that of its last query. */
export function measuredRtt({ rttMs, queries }: Pick<ServerHistory, "rttMs" | "queries">): readonly (number | null)[] {
  return rttMs.map((each, index) => (queries[index] === 0 ? null : each));
}

/** An event as a sentence, and whether it is good news. */
interface EventText {
  readonly tone: "ok" | "bad" | "warn" | "plain";
  readonly text: string;
}

type Kind = EventReport["kind"];

const TEXTS: Readonly<Record<Kind, (event: Named) => string>> = {
  "container-started": ({ container }) => `${container} started`,
  "container-stopped": ({ container }) => `${container} stopped`,
  "container-died": ({ container, exit }) => `${container} exited with code ${exit}`,
  "network-created": ({ network }) => `network ${network} created`,
  "network-removed": ({ network }) => `network ${network} removed`,
  "network-joined": ({ container, network }) => `${container} joined ${network}`,
  "network-left": ({ container, network }) => `${container} left ${network}`,
  attached: ({ container }) => `dns11 answers ${container}`,
  "handed-back": ({ container }) => `${container} handed back to Docker's resolver`,
  "attach-failed": ({ container }) => `dns11 cannot serve ${container}`,
  "server-down": ({ server }) => `nameserver ${server} is down`,
  "server-up": ({ server }) => `nameserver ${server} is up`,
  "engine-lost": () => "the engine does not respond",
  "engine-connected": () => "connected to the engine",
  "settings-reloaded": () => "settings reloaded",
};

const BAD: ReadonlySet<Kind> = new Set(["container-died", "attach-failed", "server-down", "engine-lost"]);
const WARN: ReadonlySet<Kind> = new Set(["container-stopped", "network-left", "network-removed", "handed-back"]);
const OK: ReadonlySet<Kind> = new Set(["attached", "server-up", "engine-connected"]);

interface Named {
  readonly container: string;
  readonly network: string;
  readonly server: string;
  readonly exit: string;
}

export function eventText(event: EventReport): EventText {
  const { kind, container, network, server, exitCode, detail } = event;
  const named = {
    container: container ?? "",
    network: network ?? "",
    server: server ?? "",
    exit: String(exitCode ?? "?"),
  };
  // A newer dns11 may send others.
  const text = TEXTS[kind]?.(named) ?? kind;
  const tone = BAD.has(kind) ? "bad" : WARN.has(kind) ? "warn" : OK.has(kind) ? "ok" : "plain";
  return { tone, text: detail === null ? text : `${text}: ${detail}` };
}
