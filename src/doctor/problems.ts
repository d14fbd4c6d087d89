/**
 * Problems: the result of the doctor: the findings about the host and each container, and these by their cause. One cause is one problem,
 * with whom it hits and what comes of it; a finding that another one explains is a symptom of that.
 */
import { OF_SERVERS } from "../api/causes.ts";
import { CHECKS, type Checks, type Finding, type SharedCause, type DoctorProblem } from "../base/model/finding.ts";

export interface Repair {
  /** The actions taken, a sentence each. */
  readonly did: readonly string[];
  /** What is still wrong and dns11 cannot repair. */
  readonly left: readonly string[];
}

/** The subject of findings about the host and its engine. */
export const HOST = "Docker host";

export interface CheckedSubject {
  /** A container's name, or HOST. */
  readonly subject: string;
  readonly findings: readonly Finding[];
}

export interface Report extends CheckedSubject, Repair {}

export interface Diagnosis {
  readonly machine: Report;
  readonly containers: readonly Report[];
  /** The findings by their cause. */
  readonly problems: readonly DoctorProblem[];
}

interface FoundProblem {
  readonly finding: Finding;
  readonly subject: string;
}

interface Group {
  readonly roots: FoundProblem[];
  readonly symptoms: FoundProblem[];
}

const ORDER: readonly DoctorProblem["state"][] = ["problem", "warning", "unknown"];

/** Problems first, then warnings, then what could not be checked. */
export function problemsIn(reports: readonly CheckedSubject[], checks: Checks = CHECKS): DoctorProblem[] {
  const groups = new Map<string, Group>();
  const symptoms: { readonly found: FoundProblem; readonly cause: Finding }[] = [];
  for (const { subject, findings } of reports) {
    for (const finding of findings) {
      if (finding.state === "ok") continue;
      const cause = explanationOf(finding, findings, checks);
      if (cause !== undefined) symptoms.push({ found: { finding, subject }, cause });
      else groupOf(groups, finding).roots.push({ finding, subject });
    }
  }
  for (const { found, cause } of symptoms) groupOf(groups, cause).symptoms.push(found);
  const problems = [...groups.values()].filter(({ roots }) => roots.length > 0).map(problemOf);
  return problems.toSorted((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
}

/** The finding that explains this one, and is not explained itself. */
function explanationOf(finding: Finding, all: readonly Finding[], checks: Checks): Finding | undefined {
  if (finding.code === "failing-names" && !OF_SERVERS.has(finding.shared?.cause ?? "")) return undefined;
  for (const code of checks[finding.code]?.explainedBy ?? []) {
    const cause = all.find((each) => each.code === code && each.state === "problem");
    if (cause !== undefined) return explanationOf(cause, all, checks) ?? cause;
  }
  return undefined;
}

function groupOf(groups: Map<string, Group>, { code, state, shared, detail }: Finding): Group {
  const key = JSON.stringify([code, state, shared?.key ?? detail]);
  const group = groups.get(key) ?? { roots: [], symptoms: [] };
  groups.set(key, group);
  return group;
}

function problemOf({ roots, symptoms }: Group): DoctorProblem {
  const findings = roots.map(({ finding }) => finding);
  const [{ state, what, detail, shared }] = findings as [Finding];
  const distinct = (pick: (finding: Finding) => string | undefined): string[] =>
    [...new Set(findings.map(pick).filter((text) => text !== undefined && text !== ""))] as string[];
  const about = distinct((each) => each.shared?.about);
  const hasFixes = findings.some(({ fixNow, fixForGood }) => fixNow !== undefined || fixForGood !== undefined);
  const commandsForGood = distinct(({ commandForGood }) => commandForGood);
  return {
    state: state as DoctorProblem["state"],
    title: shared === undefined ? `${what}: ${detail}` : titleOf(shared, about),
    why: distinct((each) => each.shared?.why),
    subjects: [...new Set(roots.map(({ subject }) => subject))],
    symptoms: symptomsOf(roots, symptoms),
    fixNow: distinct(({ fixNow }) => fixNow),
    fixForGood: distinct(({ fixForGood }) => fixForGood),
    ...(commandsForGood.length > 0 && { commandsForGood }),
    remedies: hasFixes ? [] : distinct(({ remedy }) => remedy),
  };
}

function titleOf({ title, titleOfMany = title }: SharedCause, about: readonly string[]): string {
  return (about.length > 1 ? titleOfMany : title).replace("{}", () => about.join(", "));
}

/** What is the same in several containers is one symptom. */
function symptomsOf(roots: readonly FoundProblem[], others: readonly FoundProblem[]): DoctorProblem["symptoms"] {
  const subjects = new Map<string, Set<string>>();
  const add = (text: string, subject: string): void => {
    subjects.set(text, (subjects.get(text) ?? new Set()).add(subject));
  };
  for (const { finding, subject } of roots) {
    if (finding.shared?.symptom !== undefined) add(finding.shared.symptom, subject);
  }
  for (const { finding, subject } of others) add(`${finding.what}: ${finding.detail}`, subject);
  return [...subjects].map(([text, found]) => ({ text, subjects: [...found] }));
}
