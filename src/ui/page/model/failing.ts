/**
 * Failing: what fails now, as a person needs it: one entry for each cause, whatever number of containers and names it hits, the worst
 * first; and what failed earlier.
 */
import type { Cause, CauseCode } from "../../../api/causes.ts";
import type { FailureReport, FailuresReport } from "../../../api/failures.ts";
import { type Scope, inScope } from "./scope.ts";

/** How long a failure of the outside world is one of now, after its last query. */
const NOW_MS = 120_000;

/** bad: a name that containers need does not resolve. info: perhaps nobody needs it, such as a typo of an external name. */
type Severity = "bad" | "warn" | "info";

/** A container and the name that it looks up; "" where it concerns all of them. */
export interface FailingPair {
  readonly container: string;
  readonly name: string;
}

export interface FailingEntry {
  /** The same for the same cause, so that it stays muted. */
  readonly key: string;
  readonly severity: Severity;
  readonly pairs: FailingPair[];
  /** A response code, or what it is instead. */
  readonly result: string;
  perMinute: number;
  readonly first: string | null;
  readonly last: string | null;
  /** Of the first pair; those of the others differ in names only. */
  readonly cause: Cause | null;
  /** What fixes it for all pairs. */
  readonly fixes: string[];
}

export interface Failing {
  readonly now: readonly FailingEntry[];
  readonly earlier: readonly FailingEntry[];
}

const RANK: Readonly<Record<Severity, number>> = { bad: 0, warn: 1, info: 2 };

export function failingOf(
  report: FailuresReport | null,
  scope: Scope,
  inProject: ReadonlySet<string>,
  nowMs: number,
): Failing {
  if (report === null) return { now: [], earlier: [] };
  const [now, earlier] = [new Map<string, FailingEntry>(), new Map<string, FailingEntry>()];
  const concerns = (containers: readonly string[]): boolean =>
    scope.project === null || containers.some((each) => inProject.has(each));
  for (const { container, cause } of report.unwatched) {
    if (!concerns([container])) continue;
    const severity = cause.isBreaking ? "bad" : "warn";
    add(now, keyOf(cause, [container]), {
      ...NO_TIMES,
      severity,
      pairs: [{ container, name: "" }],
      result: "not seen",
      cause,
    });
  }
  for (const failure of report.failures) {
    if (!inScope(scope, failure)) continue;
    const { container, name, result, perMinute, first, last, cause, project, service } = failure;
    const to = isNow(failure, nowMs) ? now : earlier;
    const key = keyOf(cause, [result, name, project, service ?? container]);
    const pairs = [{ container, name: name ?? "(hidden)" }];
    add(to, key, { severity: severityOf(failure), pairs, result, perMinute, first, last, cause });
  }
  for (const { name, network, clients, containers, cause } of report.misleading) {
    if (!concerns([...clients, ...containers])) continue;
    const pairs = (clients.length === 0 ? [""] : clients).map((container) => ({ container, name }));
    add(now, keyOf(cause, [name, network]), { ...NO_TIMES, severity: "warn", pairs, result: "misleads", cause });
  }
  return { now: sorted(now), earlier: sorted(earlier) };
}

const NO_TIMES = { perMinute: 0, first: null, last: null };
/** These have one cause, whatever is looked up. */
const OF_ALL_NAMES: ReadonlySet<CauseCode> = new Set(["upstreams-down", "no-upstream"]);

/** What has the same key is one entry: containers of one service that look up one name fail for one reason. */
function keyOf(cause: Cause | null, what: readonly (string | null)[]): string {
  if (cause !== null && OF_ALL_NAMES.has(cause.code)) return JSON.stringify([cause.code, cause.fix]);
  return JSON.stringify([cause?.code, ...what]);
}

function add(to: Map<string, FailingEntry>, key: string, entry: Omit<FailingEntry, "key" | "fixes">): void {
  const fix = entry.cause?.fix ?? null;
  const known = to.get(key);
  if (known === undefined) {
    to.set(key, { ...entry, key, fixes: fix === null ? [] : [fix] });
    return;
  }
  known.perMinute += entry.perMinute;
  if (fix !== null && !known.fixes.includes(fix)) known.fixes.push(fix);
  for (const pair of entry.pairs) {
    // One name fails once for each type.
    const isKnown = known.pairs.some((each) => each.container === pair.container && each.name === pair.name);
    if (!isKnown) known.pairs.push(pair);
  }
}

function isNow(
  { earlier, isRunning, isContainerName, last, lastSuccess, cause }: FailureReport,
  nowMs: number,
): boolean {
  if (earlier !== undefined || !isRunning || cause?.code === "resolves-now") return false;
  if (lastSuccess !== null && lastSuccess >= last) return false;
  return isContainerName || cause?.isBreaking === true || nowMs - Date.parse(last) < NOW_MS;
}

function severityOf({ isContainerName, result, cause }: FailureReport): Severity {
  if (cause?.isBreaking === true) return "bad";
  // Programs that query IPv6, too, find it.
  if (cause?.code === "no-ipv4") return "warn";
  if (result !== "NXDOMAIN" && result !== "NODATA") return "bad";
  return isContainerName ? "bad" : "info";
}

function sorted(entries: ReadonlyMap<string, FailingEntry>): FailingEntry[] {
  const time = ({ last }: FailingEntry): number => (last === null ? Infinity : Date.parse(last));
  return [...entries.values()].toSorted(
    (a, b) => RANK[a.severity] - RANK[b.severity] || b.perMinute - a.perMinute || time(b) - time(a),
  );
}

/** What a person would say that the pairs are: `api-1 -> db`, or how many of each there are. */
export function countsOf(pairs: readonly FailingPair[]): { readonly containers: number; readonly names: number } {
  return {
    containers: new Set(pairs.map(({ container }) => container).filter((each) => each !== "")).size,
    names: new Set(pairs.map(({ name }) => name).filter((each) => each !== "")).size,
  };
}
