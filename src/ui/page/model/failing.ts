/**
 * Failing: what fails now, as a person needs it: one entry for each cause, whatever number of containers and names it hits; those that
 * break something first, and of these the ones with a fix; and what failed earlier.
 */
import type { Cause, LastingFix } from "../../../api/causes.ts";
import { causeKey } from "../../../api/failure-groups.ts";
import { type FailureReport, type FailuresReport, isFailing } from "../../../api/failures.ts";
import { type Scope, inScope } from "./scope.ts";

/** How long a failure of the outside world is one of now, after its last query. */
const NOW_MS = 120_000;

/** bad: a name that containers need does not resolve. info: perhaps nobody needs it, such as a typo of an external name. */
type Severity = "bad" | "warn" | "info";

/** A container and the name that it looks up; "" where it concerns all of them. */
interface FailingPair {
  readonly container: string;
  readonly name: string;
}

export interface FailingEntry {
  /** The same for the same cause, so that it stays muted. */
  readonly key: string;
  severity: Severity;
  readonly pairs: FailingPair[];
  /** Response codes, or what it is instead. */
  readonly results: string[];
  perMinute: number;
  first: string | null;
  last: string | null;
  /** Of the first pair; those of the others differ in names only. */
  readonly cause: Cause | null;
  /** What fixes it for all pairs. */
  readonly fixes: string[];
  readonly lastingFixes: LastingFix[];
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
    add(now, { ...NO_TIMES, severity, pair: { container, name: "" }, result: "not seen", cause });
  }
  for (const failure of report.failures) {
    if (!inScope(scope, failure)) continue;
    const { container, name, result, perMinute, first, last, cause } = failure;
    const pair = { container, name: name ?? "(hidden)" };
    const to = isNow(failure, nowMs) ? now : earlier;
    add(to, { severity: severityOf(failure), pair, result, perMinute, first, last, cause });
  }
  for (const { name, clients, containers, cause } of report.misleading) {
    if (!concerns([...clients, ...containers])) continue;
    for (const container of clients.length === 0 ? [""] : clients)
      add(now, { ...NO_TIMES, severity: "warn", pair: { container, name }, result: "misleads", cause });
  }
  return { now: sorted(now), earlier: sorted(earlier) };
}

/** What fails now in one container, with the sentence and the fix for this container. */
export function failingIn(
  report: FailuresReport | null,
  { id, name: container }: { readonly id: string; readonly name: string },
  nowMs: number,
): readonly FailingEntry[] {
  if (report === null) return [];
  const own: FailuresReport = {
    failures: report.failures.filter(({ containerId }) => containerId === id),
    misleading: report.misleading
      .filter(({ clients }) => clients.includes(container))
      .map((each) => ({ ...each, clients: [container] })),
    unwatched: report.unwatched.filter((each) => each.container === container),
    omitted: 0,
  };
  return failingOf(own, { project: null }, new Set(), nowMs).now;
}

/** One failure, before it is part of an entry. */
interface Found extends Pick<FailingEntry, "severity" | "perMinute" | "first" | "last" | "cause"> {
  readonly pair: FailingPair;
  readonly result: string;
}

const NO_TIMES = { perMinute: 0, first: null, last: null };

function add(to: Map<string, FailingEntry>, found: Found): void {
  const { pair, result, severity, perMinute, first, last, cause } = found;
  const key = cause === null ? JSON.stringify([result, pair]) : causeKey(cause);
  const { fix = null, lastingFix = null } = cause ?? {};
  const known = to.get(key) ?? { ...found, key, pairs: [], results: [], perMinute: 0, fixes: [], lastingFixes: [] };
  if (!to.has(key)) to.set(key, known);
  if (RANK[severity] < RANK[known.severity]) known.severity = severity;
  known.perMinute += perMinute;
  if (first !== null && (known.first === null || first < known.first)) known.first = first;
  if (last !== null && (known.last === null || last > known.last)) known.last = last;
  if (fix !== null && !known.fixes.includes(fix)) known.fixes.push(fix);
  if (lastingFix !== null && !known.lastingFixes.some((each) => isSame(each, lastingFix)))
    known.lastingFixes.push(lastingFix);
  if (!known.results.includes(result)) known.results.push(result);
  // One name fails once for each type.
  if (!known.pairs.some(({ container, name }) => container === pair.container && name === pair.name))
    known.pairs.push(pair);
}

function isSame(a: LastingFix, b: LastingFix): boolean {
  return a.file === b.file && a.key === b.key && a.change === b.change;
}

/** That a name of the outside world does not exist is shown for a while. */
function isNow(failure: FailureReport, nowMs: number): boolean {
  if (isFailing(failure)) return true;
  const { earlier, cause, last } = failure;
  return earlier === undefined && cause?.code !== "resolves-now" && nowMs - Date.parse(last) < NOW_MS;
}

/** Most programs find such a name by its other type of address. */
const HALF: ReadonlySet<string | undefined> = new Set(["no-ipv4", "one-family"]);

function severityOf(failure: FailureReport): Severity {
  if (HALF.has(failure.cause?.code)) return "warn";
  return isFailing(failure) ? "bad" : "info";
}

function sorted(entries: ReadonlyMap<string, FailingEntry>): FailingEntry[] {
  const time = ({ last }: FailingEntry): number => (last === null ? Infinity : Date.parse(last));
  const isFixed = ({ fixes, cause }: FailingEntry): number => (fixes.length > 0 || cause?.advice !== undefined ? 0 : 1);
  return [...entries.values()].toSorted(
    (a, b) =>
      RANK[a.severity] - RANK[b.severity] || isFixed(a) - isFixed(b) || b.perMinute - a.perMinute || time(b) - time(a),
  );
}

/** Those of an earlier list in its order, then what is new. */
export function inOrder(entries: readonly FailingEntry[], keys: readonly string[]): readonly FailingEntry[] {
  const places = new Map(keys.map((key, index) => [key, index]));
  const place = ({ key }: FailingEntry): number => places.get(key) ?? keys.length;
  return entries.toSorted((a, b) => place(a) - place(b));
}

/** The containers and names of an entry, each once. */
export function partsOf({ pairs }: Pick<FailingEntry, "pairs">): {
  readonly containers: readonly string[];
  readonly names: readonly string[];
} {
  const once = (all: readonly string[]): string[] => [...new Set(all)].filter((each) => each !== "");
  return { containers: once(pairs.map(({ container }) => container)), names: once(pairs.map(({ name }) => name)) };
}

/** A name counts once for each cause: `db` of two projects are two names. */
export function countsOf(entries: readonly FailingEntry[]): { readonly containers: number; readonly names: number } {
  const parts = entries.map(partsOf);
  return {
    containers: new Set(parts.flatMap(({ containers }) => containers)).size,
    names: parts.reduce((sum, { names }) => sum + names.length, 0),
  };
}
