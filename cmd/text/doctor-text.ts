/**
 * DoctorText: a diagnosis as text. Each cause is one problem, with whom it hits, what comes of it, and what to do.
 */
import { type Diagnosis, type Report, HOST } from "../../src/doctor/problems.ts";
import type { Finding, ServedNote, DoctorProblem } from "../../src/base/model/finding.ts";
import { printable, printableLines } from "./printable.ts";
import { type Cell, table } from "./table.ts";
import { type Colour, type Display, PLAIN } from "./terminal.ts";
import { wrapped } from "./wrap.ts";

const COLOURS: Readonly<Record<Finding["state"], Colour | undefined>> = {
  ok: undefined,
  warning: "yellow",
  problem: "red",
  unknown: "yellow",
};
const WORDS: Readonly<Record<DoctorProblem["state"], string>> = {
  problem: "PROBLEM",
  warning: "WARNING",
  unknown: "UNKNOWN",
};
const NOTE = "NOTE     ";
const INDENT = " ".repeat("PROBLEM  ".length);
/** Names of containers that are listed; --all lists all of them. */
const SUBJECTS_MAX = 8;

interface TextOptions {
  /** Also all checks that passed. */
  readonly showsAll: boolean;
  /** Begins with whether each container is served, for somebody who has asked about it. */
  readonly showsServed?: boolean;
  readonly display?: Display;
}

export function diagnosisText(
  { machine, containers, problems }: Diagnosis,
  { showsAll, showsServed = false, display = PLAIN }: TextOptions,
): string {
  const reports = [machine, ...containers];
  const notes = showsServed ? containers.flatMap(notesOf) : [];
  const parts = [
    notes.map((note) => noteText(note, display)).join(""),
    ...(showsAll ? reports.map((report) => `${report.subject}\n${findingsTable(report.findings, display)}`) : []),
    ...problems.map((problem) => problemText(problem, showsAll, display)),
    repairText(reports),
    `${summary(reports, problems, showsAll, { display, isServed: notes.every((note) => note.isServed) })}\n`,
  ];
  return parts.filter((part) => part !== "").join("\n");
}

interface ContainerNote extends ServedNote {
  readonly subject: string;
}

function notesOf({ subject, findings }: Report): ContainerNote[] {
  return findings.flatMap(({ note }) => (note === undefined ? [] : [{ ...note, subject }]));
}

function noteText({ subject, text }: ContainerNote, { width, paint }: Display): string {
  const [first = "", ...rest] = wrapped(`${printable(subject)}: ${printable(text)}`, width - INDENT.length);
  return `${paint(NOTE, "bold")}${first}\n${rest.map((line) => `${INDENT}${line}\n`).join("")}`;
}

export function findingsTable(findings: readonly Finding[], display: Display = PLAIN): string {
  const rows = findings.map(({ state, what, detail, remedy }): Cell[] => [
    { text: state, colour: COLOURS[state] },
    what,
    `${detail}${remedy === undefined ? "" : `. ${remedy}`}`,
  ]);
  return table(["STATE", { title: "CHECK", min: 16 }, "FINDING"], rows, display);
}

function problemText(problem: DoctorProblem, showsAll: boolean, { width, paint }: Display): string {
  const { state, title, why, subjects, symptoms, fixNow, fixForGood, commandsForGood = [], remedies } = problem;
  const room = width - INDENT.length;
  const [only] = subjects;
  const isSingle = subjects.length === 1;
  const sentence = (text: string, lead = ""): string[] =>
    wrapped(`${lead}${printable(text)}`, room, " ".repeat(lead.length));
  const heading = sentence(isSingle ? `${only}: ${title}` : `${title}: ${countText(subjects)}`);
  const lines = [
    ...(isSingle ? [] : sentence(listText(subjects, showsAll), "in ")),
    ...why.flatMap((text) => sentence(text)),
    ...symptoms.flatMap(({ text, subjects: hit }) =>
      sentence(isSingle || hit.length === subjects.length ? text : `${text} (${listText(hit, showsAll)})`, "-> so: "),
    ),
    // A command is easier to copy from one line.
    ...fixNow.map((command, index) => `${index === 0 ? "Fix now:     " : "             "} ${printable(command)}`),
    ...fixForGood.flatMap((text, index) => sentence(text, index === 0 ? "Fix for good: " : "              ")),
    ...commandsForGood.map((command) => `              ${printable(command)}`),
    ...remedies.flatMap((text) => sentence(text, "Fix: ")),
  ];
  const [first = "", ...rest] = [...heading, ...lines];
  const word = paint(WORDS[state], COLOURS[state] ?? "bold");
  return `${word}  ${first}\n${rest.map((line) => `${INDENT}${line}\n`).join("")}`;
}

/** Such as "Docker host, 5 containers". */
function countText(subjects: readonly string[]): string {
  const count = subjects.filter((subject) => subject !== HOST).length;
  const containers = `${count} ${count === 1 ? "container" : "containers"}`;
  return subjects.includes(HOST) ? `${HOST}, ${containers}` : containers;
}

function listText(subjects: readonly string[], showsAll: boolean): string {
  const shown = showsAll ? subjects : subjects.slice(0, SUBJECTS_MAX);
  const more = subjects.length - shown.length;
  return `${shown.join(", ")}${more === 0 ? "" : ` and ${more} more`}`;
}

function repairText(reports: readonly Report[]): string {
  const did = reports.flatMap((report) => report.did.map((sentence) => `fixed: ${report.subject}: ${sentence}`));
  const left = new Set(reports.flatMap((report) => report.left.map((sentence) => `not fixed: ${sentence}`)));
  return printableLines([...did, ...left]);
}

function summary(
  reports: readonly Report[],
  problems: readonly DoctorProblem[],
  showsAll: boolean,
  { display: { paint }, isServed }: { readonly display: Display; readonly isServed: boolean },
): string {
  const passed = reports.flatMap(({ findings }) => findings).filter(({ state }) => state === "ok").length;
  const checks = `${passed} ${passed === 1 ? "check" : "checks"} passed${showsAll ? "" : ", --all shows them"}`;
  const counts = (["problem", "warning", "unknown"] as const).flatMap((state) => {
    const count = problems.filter((each) => each.state === state).length;
    return count === 0 ? [] : [countOf(state, count)];
  });
  // What dns11 does not serve is not healthy by dns11.
  if (counts.length === 0 && !isServed) return `no problem found (${checks})`;
  if (counts.length === 0) return `${paint("healthy", "green")} (${checks})`;
  return `${counts.join(", ")} (${checks})`;
}

function countOf(state: DoctorProblem["state"], count: number): string {
  if (state === "unknown") return `${count} not checked`;
  return `${count} ${count === 1 ? state : `${state}s`}`;
}
