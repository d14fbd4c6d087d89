/**
 * dns11 failures: names that fail in containers, why, and how to fix it.
 */
import type { Command } from "commander";

import type { FailureReport, FailuresReport } from "../src/api/failures.ts";
import { Fault } from "../src/base/lib/fault.ts";
import { causeLines } from "./cause-lines.ts";
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
      else if (options.all === true || each.isContainerName) process.stdout.write(followedText(each));
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

/** Failures of one name for several types with one cause are one row. */
interface FailureGroup {
  readonly report: FailureReport;
  readonly types: string[];
  count: number;
  perMinute: number;
}

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
  { failures: all, misleading, unwatched, omitted }: FailuresReport,
  showsAll: boolean,
  nowMs = Date.now(),
  display: Display = PLAIN,
): string {
  const shown = all.filter((each) => showsAll || isCurrent(each));
  const rows = groupsOf(shown).map((group): Row => {
    return { cells: cells(group, nowMs), notes: causeLines(group.report.cause, display.width) };
  });
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
  const hidden = all.length - shown.length + omitted;
  const hint = `${hidden} ${hidden === 1 ? "failure" : "failures"} of other names not shown (--all)`;
  const isHidden = hidden > 0 && (!showsAll || omitted > 0);
  return [
    rows.length === 0 ? "no container's name fails\n" : table(HEAD, rows, display),
    printableLines([...misleadingLines, ...unwatchedLines]),
    isHidden ? printableLines(["", ...wrapped(hint, display.width)]) : "",
  ].join("");
}

/** A name of a container that has not resolved since it failed. */
export function isCurrent({ isContainerName, last, lastSuccess }: FailureReport): boolean {
  return isContainerName && (lastSuccess === null || lastSuccess < last);
}

function groupsOf(reports: readonly FailureReport[]): FailureGroup[] {
  const groups = new Map<string, FailureGroup>();
  for (const report of reports) {
    const key = JSON.stringify([report.containerId, report.name, report.result, report.cause?.sentence]);
    const group = groups.get(key);
    if (group === undefined) {
      const { type, count, perMinute } = report;
      groups.set(key, { report, types: [type], count, perMinute });
    } else {
      group.types.push(report.type);
      group.count += report.count;
      group.perMinute += report.perMinute;
    }
  }
  return [...groups.values()];
}

function cells({ report, types, count, perMinute }: FailureGroup, nowMs: number): Cell[] {
  const { container, name, result, first, last, isRunning } = report;
  return [
    isRunning ? container : `${container} (ended)`,
    name ?? "(hidden)",
    types.toSorted().join(","),
    { text: result, colour: "red" },
    String(count),
    `${perMinute}/min`,
    localTime(first, nowMs),
    ago(last, nowMs),
  ];
}

function followedText(report: FailureReport): string {
  const { container, name, type, result, count, last } = report;
  const head = `${localTime(last, Date.now())}  ${container}  ${name ?? "(hidden)"}  ${type}  ${result}  (${count})`;
  return printableLines([head, ...causeLines(report.cause)]);
}
