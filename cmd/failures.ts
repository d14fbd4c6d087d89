/**
 * dns11 failures: names that fail in containers, why, and how to fix it.
 */
import type { Command } from "commander";

import { type FailureGroup, groupFailures } from "../src/api/failure-groups.ts";
import {
  type EarlierReason,
  type FailureReport,
  type FailuresReport,
  injectedText,
  isFailing,
} from "../src/api/failures.ts";
import { Fault } from "../src/base/lib/fault.ts";
import { causeLines, lastingLines, sentenceLines } from "./cause-lines.ts";
import { type ProjectOptions, addProjectOption, containersRequest } from "./container-argument.ts";
import { type ControlOptions, addControlOptions, clientFor } from "./control-options.ts";
import { jsonLine, printableLines } from "./printable.ts";
import { abortOnSignal } from "./run.ts";
import { type Cell, type Column, type Row, table } from "./table.ts";
import { type Display, PLAIN, displayOf } from "./terminal.ts";
import { ago, localTime } from "./time.ts";
import { type WatchOptions, addWatchOption, printOrWatch } from "./watch.ts";
import { wrapped } from "./wrap.ts";

interface FailuresOptions extends ControlOptions, ProjectOptions, WatchOptions {
  readonly follow?: boolean;
  readonly all?: boolean;
}

export function addFailures(program: Command): void {
  const command = program
    .command("failures [container]")
    .summary("List names that fail, why, and how to fix it")
    .description("List names that fail, why, and how to fix it, in one container or in all")
    .option("--all", "also names of the outside world, and names that have resolved since")
    .option("--follow", "show failures as they happen")
    .option("--json", "print JSON; with --follow, one object per line");
  addControlOptions(addProjectOption(addWatchOption(command))).action(
    async (container: string | undefined, options: FailuresOptions) => await failures(container, options),
  );
}

async function failures(container: string | undefined, options: FailuresOptions): Promise<void> {
  const client = await clientFor(options);
  const chosen = await containersRequest(client, container, options);
  if (options.follow === true) {
    const signal = abortOnSignal();
    // The reader may close the pipe at any time.
    process.stdout.on("error", () => process.exit());
    for await (const each of client.followFailures(chosen, signal)) {
      if (options.json === true) process.stdout.write(jsonLine(each));
      else if (options.all === true || isFailing(each)) process.stdout.write(followedText(each));
    }
    if (!signal.aborted) throw new Fault("ENDED", "dns11 has stopped");
    return;
  }
  await printOrWatch(options, async () => {
    const report = await client.failures(chosen);
    if (options.json === true) return jsonLine(report);
    return failuresText(report, options.all === true, Date.now(), displayOf(process.stdout));
  });
}

/** Names, containers and commands that are listed of one cause; --json has all. */
const LISTED_MAX = 4;
const COMMANDS_MAX = 8;

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
  const groups = groupFailures(shown);
  const rowOf = (group: FailureGroup): Row => ({ cells: cells(group, nowMs), notes: groupLines(group, display.width) });
  const current = groups.filter(({ reports: [first] }) => first?.earlier === undefined).map(rowOf);
  const earlier = groups.filter(({ reports: [first] }) => first?.earlier !== undefined).map(rowOf);
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

/** The sentence of each failure, and what to do about all of them. */
function groupLines(group: FailureGroup, width: number): string[] {
  const { cause, reports, sentences, fixes, lastingFixes } = group;
  const earlier = reports[0]?.earlier;
  if (cause === null) return [];
  const head = earlier === undefined ? [] : [`  now: ${EARLIER[earlier]}`];
  if (sentences.length === 1 && fixes.length < 2 && lastingFixes.length < 2)
    return [...causeLines(cause, width), ...head];
  const more = sentences.length - LISTED_MAX;
  return [
    ...sentences.slice(0, LISTED_MAX).flatMap((sentence) => sentenceLines(sentence, width)),
    ...(more > 0 ? [`       and ${more} more`] : []),
    ...fixes.slice(0, COMMANDS_MAX).map((fix) => `  fix: ${fix}`),
    ...(cause.advice === undefined ? [] : causeLines({ ...cause, fix: null, lastingFix: null }, width).slice(1)),
    ...lastingFixes.slice(0, COMMANDS_MAX).flatMap((each) => lastingLines(each, width)),
    ...head,
  ];
}

const EARLIER: Readonly<Record<EarlierReason, string>> = {
  ended: "the container has ended",
  resolved: "the name has resolved since",
  recovered: "what made it fail is over; nobody has asked again",
  idle: "it has not failed for five minutes",
};

function cells(
  { reports, names, containers, types, results, count, perMinute, first, last }: FailureGroup,
  nowMs: number,
): Cell[] {
  const isEnded = reports.every(({ isRunning }) => !isRunning);
  return [
    isEnded ? `${listed(containers)} (ended)` : listed(containers),
    listed(names.map((name) => name ?? "(hidden)")),
    types.join(","),
    { text: results.join(","), colour: "red" },
    String(count),
    `${perMinute}/min`,
    localTime(first, nowMs),
    ago(last, nowMs),
  ];
}

function listed(texts: readonly string[]): string {
  const more = texts.length - LISTED_MAX;
  return `${texts.slice(0, LISTED_MAX).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function followedText(report: FailureReport): string {
  const { container, name, type, result, count, last } = report;
  const head = `${localTime(last, Date.now())}  ${container}  ${name ?? "(hidden)"}  ${type}  ${result}  (${count})`;
  return printableLines([head, ...causeLines(report.cause)]);
}
