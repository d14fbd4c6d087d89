/**
 * dns11 failures: names that fail in containers, why, and how to fix it.
 */
import type { Command } from "commander";

import type { FailureReport, FailuresReport } from "../src/api/failures.ts";
import { Fault } from "../src/base/lib/fault.ts";
import { causeLines } from "./cause-lines.ts";
import { type ControlOptions, addControlOptions, clientFor } from "./control-options.ts";
import { printableLines } from "./printable.ts";
import { abortOnSignal } from "./run.ts";
import { table } from "./table.ts";

interface FailuresOptions extends ControlOptions {
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
  addControlOptions(command).action(
    async (container: string | undefined, options: FailuresOptions) => await failures(container, options),
  );
}

async function failures(container: string | undefined, options: FailuresOptions): Promise<void> {
  const client = await clientFor(options);
  if (options.follow === true) {
    const signal = abortOnSignal();
    // The reader may close the pipe at any time.
    process.stdout.on("error", () => process.exit());
    for await (const each of client.followFailures(container, signal)) {
      if (options.json === true) process.stdout.write(`${JSON.stringify(each)}\n`);
      else if (options.all === true || each.isContainerName) process.stdout.write(followedText(each));
    }
    if (!signal.aborted) throw new Fault("ENDED", "dns11 has stopped");
    return;
  }
  const report = await client.failures(container);
  const text = options.json === true ? `${JSON.stringify(report)}\n` : failuresText(report, options.all === true);
  process.stdout.write(text);
}

/** Failures of one name for several types with one cause are one row. */
interface FailureGroup {
  readonly report: FailureReport;
  readonly types: string[];
  count: number;
  perMinute: number;
}

const HEAD = ["CONTAINER", "NAME", "TYPE", "RESULT", "COUNT", "RATE", "FIRST", "LAST"];

export function failuresText(
  { failures: all, misleading, unwatched, omitted }: FailuresReport,
  showsAll: boolean,
  nowMs = Date.now(),
): string {
  const shown = all.filter((each) => showsAll || isCurrent(each));
  const groups = groupsOf(shown);
  const rows = table(
    HEAD,
    groups.map((group) => row(group, nowMs)),
  ).split("\n");
  const lines =
    groups.length === 0
      ? []
      : [
          rows[0] ?? "",
          ...groups.flatMap((group, index) => [rows[index + 1] ?? "", ...causeLines(group.report.cause)]),
        ];
  const misleadingLines = misleading.flatMap(({ name, network, clients, cause }) => [
    "",
    `${name}${network === null ? "" : ` on network ${network}`} resolves, but misleads ${clients.join(", ") || "its clients"}`,
    ...causeLines(cause),
  ]);
  const unwatchedLines = unwatched.flatMap(({ container, cause }) => [
    "",
    `${container}: its failures are not seen`,
    ...causeLines(cause),
  ]);
  const hidden = all.length - shown.length + omitted;
  const notes =
    hidden === 0 ? [] : ["", `${hidden} ${hidden === 1 ? "failure" : "failures"} of other names not shown (--all)`];
  const none = groups.length === 0 ? ["no container's name fails"] : [];
  return printableLines([
    ...none,
    ...lines,
    ...misleadingLines,
    ...unwatchedLines,
    ...(showsAll && omitted === 0 ? [] : notes),
  ]);
}

/** A name of a container that has not resolved since it failed. */
function isCurrent({ isContainerName, last, lastSuccess }: FailureReport): boolean {
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

function row({ report, types, count, perMinute }: FailureGroup, nowMs: number): string[] {
  const { container, name, result, first, last, isRunning } = report;
  return [
    isRunning ? container : `${container} (ended)`,
    name ?? "(hidden)",
    types.toSorted().join(","),
    result,
    String(count),
    `${perMinute}/min`,
    localTime(first, nowMs),
    `${age(nowMs - Date.parse(last))} ago`,
  ];
}

function followedText(report: FailureReport): string {
  const { container, name, type, result, count, last } = report;
  const head = `${localTime(last, Date.now())}  ${container}  ${name ?? "(hidden)"}  ${type}  ${result}  (${count})`;
  return printableLines([head, ...causeLines(report.cause)]);
}

const DAY_MS = 86_400_000;

/** The time of day, and the date if that is not within a day. */
function localTime(iso: string, nowMs: number): string {
  const date = new Date(iso);
  const two = (number: number): string => String(number).padStart(2, "0");
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  if (nowMs - date.getTime() < DAY_MS) return time;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

const SECOND_MS = 1_000;
const MINUTE_S = 60;
const HOUR_S = 3_600;

function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / SECOND_MS));
  if (seconds < 2 * MINUTE_S) return `${seconds} s`;
  if (seconds < 2 * HOUR_S) return `${Math.floor(seconds / MINUTE_S)} min`;
  return `${Math.floor(seconds / HOUR_S)} h`;
}
