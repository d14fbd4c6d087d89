/**
 * Problems: what goes wrong in containers, by its cause. One missing network is one problem, however many names and containers it
 * hits, and so is a container that is down. Commands, the page and the GitHub Action show the same ones, in the same order.
 */
import type { Cause, CauseCode, LastingFix } from "./causes.ts";
import { type FailureReport, isFailing } from "./failures.ts";

/** bad: a name that containers need does not resolve. info: perhaps nobody needs it, such as a typo of an external name. */
type Severity = "bad" | "warn" | "info";

/** A name that fails in a container, or that misleads it; or a container whose failures nobody sees. */
export interface Symptom {
  /** Empty where it concerns all that ask for the name. */
  readonly container: string;
  /** Empty where it concerns all names of the container; null for a hidden one. */
  readonly name: string | null;
  readonly type?: string;
  /** A response code, or what it is instead. */
  readonly result: string;
  readonly severity: Severity;
  readonly cause: Cause | null;
  /** Why it no longer counts; missing while it does. */
  readonly earlier?: FailureReport["earlier"];
  readonly count: number;
  readonly perMinute: number;
  /** null where nobody has counted. */
  readonly first: string | null;
  readonly last: string | null;
}

export interface FailingName extends FailureReport {
  readonly severity: Severity;
}

export interface Problem<S extends Symptom = Symptom> {
  /** The same for the same cause, while time passes. */
  readonly key: string;
  /** That of the worst symptom. */
  readonly severity: Severity;
  /** The cause of the symptom that was there last. */
  readonly cause: Cause | null;
  /** The one that was there last comes first. */
  readonly symptoms: readonly S[];
  /** Each once, without empty ones. */
  readonly containers: readonly string[];
  readonly names: readonly S["name"][];
  readonly types: readonly string[];
  readonly results: readonly string[];
  readonly sentences: readonly string[];
  readonly fixes: readonly string[];
  readonly lastingFixes: readonly LastingFix[];
  readonly count: number;
  readonly perMinute: number;
  readonly first: string | null;
  readonly last: string | null;
}

/** Most programs find such a name by its other type of address. */
const HALF: ReadonlySet<CauseCode | undefined> = new Set(["no-ipv4", "one-family"] as const);
const RANK: Readonly<Record<Severity, number>> = { bad: 0, warn: 1, info: 2 };

export function failingName(failure: FailureReport): FailingName {
  const severity = HALF.has(failure.cause?.code) ? "warn" : isFailing(failure) ? "bad" : "info";
  return { ...failure, severity };
}

/** By cause. The worst comes first, and of what is as bad the one that somebody can mend; what no longer counts is last. */
export function problemsOf<S extends Symptom>(symptoms: readonly S[]): Problem<S>[] {
  const problems = grouped(symptoms, ({ cause, earlier, container, name }) => {
    const key = cause === null ? JSON.stringify([container, name]) : causeKey(cause);
    return earlier === undefined ? key : `${earlier} ${key}`;
  });
  return problems.toSorted((a, b) => rankOf(a) - rankOf(b) || b.perMinute - a.perMinute || latestFirst(a, b));
}

/** Each name of each container: its types, such as A and AAAA, fail together. */
export function namesOf(failures: readonly FailureReport[]): Problem<FailingName>[] {
  const symptoms = failures.map((each) => failingName(each));
  return grouped(symptoms, ({ containerId, name, cause }) => JSON.stringify([containerId, name, cause?.sentence]));
}

/** The same for causes that one change fixes, or that nothing fixes. */
export function causeKey({ about, code, fix, lastingFix, sentence, isBreaking }: Cause): string {
  if (about !== undefined) return JSON.stringify([code, about]);
  if (fix !== null || lastingFix !== null) return JSON.stringify([code, lastingFix ?? fix]);
  return JSON.stringify([code, isBreaking ? sentence : ""]);
}

/** Also a part of a problem is one. */
export function grouped<S extends Symptom>(symptoms: readonly S[], keyOf: (symptom: S) => string): Problem<S>[] {
  const groups = new Map<string, S[]>();
  for (const each of symptoms) {
    const key = keyOf(each);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [each]);
    else group.push(each);
  }
  return [...groups].map(([key, group]) => problemOf(key, group));
}

function problemOf<S extends Symptom>(key: string, unsorted: readonly S[]): Problem<S> {
  const symptoms = unsorted.toSorted(latestFirst);
  const distinct = <T>(pick: (symptom: S) => T): T[] => [...new Set(symptoms.map(pick))];
  const causes = symptoms.map(({ cause }) => cause).filter((cause) => cause !== null);
  const fixes = new Map(causes.map(({ lastingFix }) => [JSON.stringify(lastingFix), lastingFix]));
  const times = symptoms.map(({ first }) => first).filter((time) => time !== null);
  return {
    key,
    severity: symptoms.reduce<Severity>(
      (worst, each) => (RANK[each.severity] < RANK[worst] ? each.severity : worst),
      "info",
    ),
    cause: causes[0] ?? null,
    symptoms,
    containers: distinct(({ container }) => container).filter((each) => each !== ""),
    names: distinct<S["name"]>(({ name }) => name).filter((each) => each !== ""),
    types: distinct(({ type = "" }) => type).toSorted(),
    results: distinct(({ result }) => result),
    sentences: [...new Set(causes.map(({ sentence }) => sentence))],
    fixes: [...new Set(causes.flatMap(({ fix }) => fix ?? []))],
    lastingFixes: [...fixes.values()].filter((fix) => fix !== null),
    count: symptoms.reduce((sum, { count }) => sum + count, 0),
    perMinute: symptoms.reduce((sum, { perMinute }) => sum + perMinute, 0),
    first: times.toSorted()[0] ?? null,
    last: symptoms.find(({ last }) => last !== null)?.last ?? null,
  };
}

function rankOf({ severity, cause, fixes, lastingFixes, symptoms: [first] }: Problem): number {
  const isMendable = fixes.length > 0 || lastingFixes.length > 0 || cause?.advice !== undefined;
  return (first?.earlier === undefined ? 0 : 6) + RANK[severity] * 2 + (isMendable ? 0 : 1);
}

/** What nobody has counted is there now. */
function latestFirst({ last: a }: Pick<Symptom, "last">, { last: b }: Pick<Symptom, "last">): number {
  if (a === b) return 0;
  return b === null || (a !== null && a < b) ? 1 : -1;
}
