/**
 * Failing: what fails now, as a person needs it: one problem for each cause, whatever number of containers and names it hits; and what
 * failed earlier.
 */
import type { Cause, CauseCode } from "../../../api/causes.ts";
import { type FailureReport, type FailuresReport, isFailing } from "../../../api/failures.ts";
import { type Problem, type Symptom, failingName, problemsOf } from "../../../api/problems.ts";
import { type Scope, inScope } from "./scope.ts";

/** How long a failure of the outside world is one of now, after its last query. */
const NOW_MS = 120_000;

/** Its name is shown as it is. */
interface ShownSymptom extends Symptom {
  readonly name: string;
}

export type FailingEntry = Problem<ShownSymptom>;

export interface Failing {
  readonly now: readonly FailingEntry[];
  readonly earlier: readonly FailingEntry[];
}

/** `inProject`: names of containers; of another project than that of `scope` nothing is shown. */
export function failingOf(
  report: FailuresReport | null,
  scope: Scope,
  inProject: ReadonlySet<string>,
  nowMs: number,
): Failing {
  if (report === null) return { now: [], earlier: [] };
  const concerns = (containers: readonly string[]): boolean =>
    scope.project === null || containers.some((each) => inProject.has(each));
  const failures = report.failures.filter((each) => inScope(scope, each));
  const [now, earlier] = [true, false].map((is) => failures.filter((each) => isNow(each, nowMs) === is).map(shown));
  const unwatched = report.unwatched
    .filter(({ container }) => concerns([container]))
    .map(({ container, cause }) => {
      const severity = cause.isBreaking ? "bad" : "warn";
      return { ...UNCOUNTED, container, name: "", result: "not seen", severity, cause } as const;
    });
  const misleading = report.misleading
    .filter(({ clients, containers }) => concerns([...clients, ...containers]))
    .flatMap(({ name, clients, cause }) =>
      (clients.length === 0 ? [""] : clients).map((container) => {
        return { ...UNCOUNTED, container, name, result: "misleads", severity: "warn", cause } as const;
      }),
    );
  return { now: problemsOf([...unwatched, ...(now ?? []), ...misleading]), earlier: problemsOf(earlier ?? []) };
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

const UNCOUNTED = { count: 0, perMinute: 0, first: null, last: null };

function shown(failure: FailureReport): ShownSymptom {
  return { ...failingName(failure), name: failure.name ?? "(hidden)" };
}

/** That a name of the outside world does not exist is shown for a while. */
function isNow(failure: FailureReport, nowMs: number): boolean {
  if (isFailing(failure)) return true;
  const { earlier, cause, last } = failure;
  return earlier === undefined && cause?.code !== "resolves-now" && nowMs - Date.parse(last) < NOW_MS;
}

/** Those of an earlier list in its order, then what is new. */
export function inOrder(entries: readonly FailingEntry[], keys: readonly string[]): readonly FailingEntry[] {
  const places = new Map(keys.map((key, index) => [key, index]));
  const place = ({ key }: FailingEntry): number => places.get(key) ?? keys.length;
  return entries.toSorted((a, b) => place(a) - place(b));
}

/** A name counts once for each cause: `db` of two projects are two names. */
export function countsOf(entries: readonly FailingEntry[]): { readonly containers: number; readonly names: number } {
  return {
    containers: new Set(entries.flatMap(({ containers }) => containers)).size,
    names: entries.reduce((sum, { names }) => sum + names.length, 0),
  };
}

/** Names that nothing here has: there is nothing to say about one of them that is not true of all. */
const UNKNOWN: Readonly<Partial<Record<CauseCode, string>>> = {
  "unknown-name": "no container on this engine has any of these names",
  "does-not-exist": "these names do not exist, according to their upstream servers",
};
const ELSEWHERE: ReadonlySet<CauseCode> = new Set(["other-network", "other-project"]);

/** One sentence for all that a cause hits, whichever container looked up whichever name; that of the API if it is one name in one container. */
export function sentenceOf({ about: network, code, sentence }: Cause, { names, containers }: FailingEntry): string {
  if (names.length <= 1 && containers.length <= 1) return sentence;
  if (network !== undefined && ELSEWHERE.has(code)) {
    const [name, container] = [names.length === 1 ? `"${names[0]}" is` : "these names are", containers[0] ?? ""];
    return `${name} on network ${network}; ${containers.length === 1 ? `${container} is` : "these containers are"} not on it`;
  }
  if (names.length === 1) return sentence;
  return UNKNOWN[code] ?? `${sentence}; the same for the other names`;
}
