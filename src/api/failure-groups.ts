/**
 * FailureGroups: failures by their cause. One missing network is one cause, however many names and containers it hits, and so
 * is a container that is down. What can be fixed comes first.
 */
import type { Cause, LastingFix } from "./causes.ts";
import type { FailureReport } from "./failures.ts";

export interface FailureGroup {
  /** The cause of the failure that happened last. */
  readonly cause: Cause | null;
  /** The one that happened last comes first. */
  readonly reports: readonly FailureReport[];
  /** Each once; null stands for hidden names. */
  readonly names: readonly (string | null)[];
  readonly containers: readonly string[];
  readonly types: readonly string[];
  readonly results: readonly string[];
  readonly sentences: readonly string[];
  readonly fixes: readonly string[];
  readonly lastingFixes: readonly LastingFix[];
  readonly count: number;
  readonly perMinute: number;
  readonly first: string;
  readonly last: string;
}

/** The same for causes that one change fixes, or that nothing fixes. */
export function causeKey({ about, code, fix, lastingFix, sentence, isBreaking }: Cause): string {
  if (about !== undefined) return JSON.stringify([code, about]);
  if (fix !== null || lastingFix !== null) return JSON.stringify([code, lastingFix ?? fix]);
  return JSON.stringify([code, isBreaking ? sentence : ""]);
}

export function groupFailures(reports: readonly FailureReport[]): FailureGroup[] {
  const groups = new Map<string, FailureReport[]>();
  for (const report of reports) {
    const { cause, earlier = "" } = report;
    const key = JSON.stringify([earlier, cause === null ? [report.containerId, report.name] : causeKey(cause)]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [report]);
    else group.push(report);
  }
  return [...groups.values()].map(groupOf).toSorted((a, b) => rankOf(a) - rankOf(b) || latestFirst(a, b));
}

/** The same group in parts in which each container asks for each name, so that nobody is said to ask for another one's. */
export function partsOf({ reports }: FailureGroup): FailureGroup[] {
  const clients = new Map<string | null, Set<string>>();
  for (const { name, container } of reports) clients.set(name, (clients.get(name) ?? new Set()).add(container));
  const parts = new Map<string, FailureReport[]>();
  for (const report of reports) {
    const key = JSON.stringify([...(clients.get(report.name) ?? [])].toSorted());
    const part = parts.get(key);
    if (part === undefined) parts.set(key, [report]);
    else part.push(report);
  }
  const all = [...parts.values()];
  const rest = all.length > PARTS_MAX ? [all.slice(PARTS_MAX - 1).flat()] : [];
  return [...all.slice(0, rest.length === 0 ? PARTS_MAX : PARTS_MAX - 1), ...rest].map(groupOf);
}

const PARTS_MAX = 6;

function groupOf(all: readonly FailureReport[]): FailureGroup {
  const reports = all.toSorted(latestFirst);
  const distinct = <T>(pick: (report: FailureReport) => T): T[] => [...new Set(reports.map(pick))];
  const causes = reports.map(({ cause }) => cause).filter((cause) => cause !== null);
  return {
    cause: causes[0] ?? null,
    reports,
    names: distinct(({ name }) => name),
    containers: distinct(({ container }) => container),
    types: distinct(({ type }) => type).toSorted(),
    results: distinct(({ result }) => result),
    sentences: [...new Set(causes.map(({ sentence }) => sentence))],
    fixes: [...new Set(causes.flatMap(({ fix }) => fix ?? []))],
    lastingFixes: [
      ...new Map(causes.flatMap(({ lastingFix: fix }) => (fix === null ? [] : [[JSON.stringify(fix), fix]]))).values(),
    ],
    count: reports.reduce((sum, { count }) => sum + count, 0),
    perMinute: reports.reduce((sum, { perMinute }) => sum + perMinute, 0),
    first: reports.reduce((first, each) => (each.first < first ? each.first : first), reports[0]?.first ?? ""),
    last: reports[0]?.last ?? "",
  };
}

/** What a change fixes, then what is known to be broken, then the rest; what no longer fails comes last. */
function rankOf({ cause, reports: [first] }: FailureGroup): number {
  const isFixable = cause !== null && (cause.fix !== null || cause.lastingFix !== null);
  return (first?.earlier === undefined ? 0 : 3) + (isFixable ? 0 : cause?.isBreaking === true ? 1 : 2);
}

function latestFirst(a: { readonly last: string }, b: { readonly last: string }): number {
  return a.last === b.last ? 0 : a.last < b.last ? 1 : -1;
}
