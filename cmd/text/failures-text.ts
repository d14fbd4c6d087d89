/**
 * FailuresText: names that fail as text, those with one cause together.
 */
import {
  type EarlierReason,
  type FailureReport,
  type FailuresReport,
  injectedText,
  isFailing,
} from "../../src/api/failures.ts";
import { type Cause, fixesOf, remediesOf } from "../../src/api/causes.ts";
import { type FailingName, type Problem, failingName, grouped, problemsOf } from "../../src/api/problems.ts";
import { printableLines, printable } from "./printable.ts";
import { type Cell, type Column, type Row, table } from "./table.ts";
import { type Display, PLAIN, ago, localTime } from "./terminal.ts";
import { wrapped } from "./wrap.ts";

/** Names, containers and commands that are listed of one cause; --json has all. */
const LISTED_MAX = 4;
const COMMANDS_MAX = 8;
/** Rows of one problem. */
const PARTS_MAX = 6;

type FailureProblem = Problem<FailingName>;

const HEAD: readonly Column[] = [
  { title: "CONTAINER", min: 12 },
  { title: "NAME", min: 12 },
  { title: "TYPE", drop: 2 },
  { title: "RESULT" },
  { title: "COUNT", isNumber: true },
  { title: "RATE", isNumber: true, drop: 3 },
  { title: "FIRST", drop: 4 },
  { title: "LAST", drop: 1 },
];

export function failuresText(
  { failures: all, misleading, unwatched, injected = [], omitted }: FailuresReport,
  showsAll: boolean,
  nowMs = Date.now(),
  display: Display = PLAIN,
): string {
  const shown = all.filter((each) => showsAll || isFailing(each));
  const problems = problemsOf(shown.map((each) => failingName(each)));
  const rowsOf = (problem: FailureProblem): Row[] =>
    partsOf(problem).map((part, index, { length }) => ({
      cells: cells(part, nowMs),
      notes: index === length - 1 ? problemLines(problem, display.width) : [],
    }));
  const current = problems.filter(({ symptoms: [first] }) => first?.earlier === undefined).flatMap(rowsOf);
  const earlier = problems.filter(({ symptoms: [first] }) => first?.earlier !== undefined).flatMap(rowsOf);
  const misleadingLines = misleading.flatMap(({ name, network, clients, cause }) => [
    "",
    `${name}${network === null ? "" : ` on network ${network}`} resolves, but misleads ${clients.join(", ") || "its clients"}`,
    ...causeLines(cause, display.width),
  ]);
  const unwatchedLines = unwatched.flatMap(({ container, cause }) => [
    "",
    `${container}: its failures are not seen`,
    ...causeLines(cause, display.width),
  ]);
  const injectedLines = injected.flatMap((each) => [
    "",
    ...wrapped(injectedText(each, localTime(each.since, nowMs)), display.width),
  ]);
  const hidden = all.length - shown.length + omitted;
  const hint = `${hidden} ${hidden === 1 ? "failure" : "failures"} of other names, or from earlier, not shown (--all)`;
  const isHidden = hidden > 0 && (!showsAll || omitted > 0);
  return [
    current.length === 0 ? "no container's name fails\n" : table(HEAD, current, display),
    earlier.length === 0 ? "" : `\nearlier\n${table(HEAD, earlier, display)}`,
    printableLines([...misleadingLines, ...unwatchedLines, ...injectedLines]),
    isHidden ? printableLines(["", ...wrapped(hint, display.width)]) : "",
  ].join("");
}

/** In parts in which each container asks for each name, so that nobody is said to ask for another one's. */
function partsOf({ symptoms }: FailureProblem): FailureProblem[] {
  const clients = new Map<string | null, Set<string>>();
  for (const { name, container } of symptoms) clients.set(name, (clients.get(name) ?? new Set()).add(container));
  const keyOf = ({ name }: FailingName): string => JSON.stringify([...(clients.get(name) ?? [])].toSorted());
  const keys = [...new Set(symptoms.map((each) => keyOf(each)))];
  const own = new Set(keys.slice(0, keys.length > PARTS_MAX ? PARTS_MAX - 1 : PARTS_MAX));
  return grouped(symptoms, (each) => {
    const key = keyOf(each);
    return own.has(key) ? key : "";
  });
}

/** The sentence of each failure, and what to do about all of them. */
function problemLines({ cause, symptoms, sentences, fixes, lastingFixes }: FailureProblem, width: number): string[] {
  if (cause === null) return [];
  const earlier = symptoms[0]?.earlier;
  const more = sentences.length - LISTED_MAX;
  const shown = { fixes: fixes.slice(0, COMMANDS_MAX), lastingFixes: lastingFixes.slice(0, COMMANDS_MAX) };
  return [
    ...sentences.slice(0, LISTED_MAX).flatMap((sentence) => sentenceLines(sentence, width)),
    ...(more > 0 ? [`       and ${more} more`] : []),
    ...remedyLines({ ...shown, advice: cause.advice }, width),
    ...(earlier === undefined ? [] : [`  now: ${EARLIER[earlier]}`]),
  ];
}

const EARLIER: Readonly<Record<EarlierReason, string>> = {
  ended: "the container has ended",
  resolved: "the name has resolved since",
  recovered: "what made it fail is over; nobody has asked again",
  idle: "it has not failed for five minutes",
};

function cells(
  { symptoms, names, containers, types, results, count, perMinute, first, last }: FailureProblem,
  nowMs: number,
): Cell[] {
  const clients = containers.map((each) =>
    clientText(
      symptoms.find(({ container }) => container === each),
      each,
    ),
  );
  const isEnded = symptoms.every(({ isRunning }) => !isRunning);
  return [
    isEnded ? `${listed(clients)} (ended)` : listed(clients),
    listed(names.map((name) => name ?? "(hidden)")),
    types.join(","),
    { text: results.join(","), colour: "red" },
    String(count),
    `${perMinute}/min`,
    localTime(first ?? "", nowMs),
    ago(last ?? "", nowMs),
  ];
}

/** Containers in one network namespace cannot be told apart. */
function clientText(report: FailureReport | undefined, container: string): string {
  return [container, ...(report?.sharedWith ?? [])].join(" or ");
}

function listed(texts: readonly string[]): string {
  const more = texts.length - LISTED_MAX;
  return `${texts.slice(0, LISTED_MAX).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

export function followedText(report: FailureReport): string {
  const { container, name, type, result, count, last } = report;
  const head = `${localTime(last, Date.now())}  ${clientText(report, container)}  ${name ?? "(hidden)"}  ${type}  ${result}  (${count})`;
  return printableLines([head, ...causeLines(report.cause)]);
}

/** A cause as text for people, with its fix and the change of the Compose file. */
function causeLines(cause: Cause | null, width = PLAIN.width): string[] {
  if (cause === null) return [];
  return [...sentenceLines(cause.sentence, width), ...remedyLines(fixesOf(cause), width)];
}

function sentenceLines(sentence: string, width: number): string[] {
  return wrapped(`  why: ${printable(sentence)}`, width, "       ");
}

/** Sentences are wrapped; a command is easier to copy from one line. */
function remedyLines(fixes: Parameters<typeof remediesOf>[0], width: number): string[] {
  return remediesOf(fixes).flatMap(({ label, text, isCommand }) => {
    if (label === "") return [`            ${text}`];
    if (isCommand) return [`  ${label}: ${text}`];
    return wrapped(`  ${label}: ${printable(text)}`, width, label === "for good" ? "            " : "       ");
  });
}
