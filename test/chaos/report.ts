// Report of a run as text.

import type { ProbeResult } from "./prober.ts";
import type { Judgement, Recording, Tally, Violation } from "./judge.ts";
import type { Plan } from "./plan.ts";
import type { AppliedFault } from "./run.ts";
import type { Supervisor } from "./supervisor.ts";

export type Result = {
  readonly plan: Plan;
  readonly beganMs: number;
  readonly appliedFaults: readonly AppliedFault[];
  readonly records: readonly Recording[];
  readonly judgement: Judgement;
  readonly violations: readonly Violation[];
  readonly load: ReadonlyMap<string, number>;
  // What was recorded of who asked and answered; undefined without a witness.
  readonly history: string | undefined;
  readonly ends: ReadonlyMap<string, number>;
  readonly costs: Supervisor["costs"];
  // Total time that dns11 waited for a CPU.
  readonly starvedMs: number;
  // Containers that exited unexpectedly.
  readonly died: readonly string[];
  // Logs of all dns11 processes, and of dockerd.
  readonly log: string;
  readonly engineLog: string;
  readonly leftovers: readonly string[];
};

const VIOLATIONS_SHOWN = 40;
const AROUND_MS = 2_000;
const MEGABYTE = 1e6;

export function reportOf(result: Result): string[] {
  const { plan, judgement, appliedFaults, violations, died, load, ends, costs, leftovers } = result;
  const { expected, excused, lost, longestGapMs } = judgement;
  const failed = appliedFaults.filter(({ hasFailed }) => hasFailed);
  return [
    `seed ${plan.seed}, ${plan.lengthMs / 1_000} s`,
    "",
    `${appliedFaults.length} faults:`,
    ...countsOf(appliedFaults.map(({ fault, note }) => `${fault.kind}${noteOfKind(note)}`)),
    ...failed.map(({ fault, note }) => `  failed: ${fault.kind}: ${note}`),
    "",
    "probes of own names while an answer was expected:",
    `  ${tallyText(expected)}; longest time without a correct answer ${Math.round(longestGapMs)} ms`,
    ...[...lost].map(([how, count]) => `  lost: ${count} ${how}`),
    "",
    "excused time, in client seconds (each container has three clients):",
    ...[...excused].map(([why, tally]) => `  ${tally.seconds.toFixed(1)} s: ${why}; ${tallyText(tally)}`),
    "",
    "background load (counted, not judged):",
    ...[...load].toSorted(byWord).map(([what, count]) => `  ${count} ${what}`),
    "",
    `history: ${result.history ?? "not recorded"}`,
    `containers that exited unexpectedly: ${died.length === 0 ? "none" : died.join(", ")}`,
    `exits of dns11: ${[...ends].map(([how, count]) => `${how}: ${count}`).join(", ")}`,
    ...costText(costs),
    `dns11 waited ${(result.starvedMs / 1_000).toFixed(1)} s for a CPU`,
    `left over: ${leftovers.length === 0 ? "nothing" : leftovers.join(", ")}`,
    "",
    violations.length === 0 ? "no violations" : `${violations.length} VIOLATIONS:`,
    ...violations.slice(0, VIOLATIONS_SHOWN).flatMap((violation) => violationText(violation, result)),
  ];
}

function violationText({ container, fromMs, toMs, what }: Violation, result: Result): string[] {
  const { appliedFaults, records, beganMs } = result;
  const seconds = (ms: number): string => `${((ms - beganMs) / 1_000).toFixed(2)} s`;
  const around = appliedFaults.filter((one) => one.beganMs < toMs + AROUND_MS && one.endedMs > fromMs - AROUND_MS);
  const probes = records
    .filter((record) => record.container === container)
    .flatMap((record) => record.probes)
    .filter(({ startedMs }) => startedMs >= fromMs - 1 && startedMs <= toMs);
  return [
    `- ${container}, ${seconds(fromMs)} to ${seconds(toMs)}: ${what}`,
    ...around.map(
      ({ fault, beganMs: from, endedMs: to, note }) =>
        `    ${fault.kind} from ${seconds(from)} to ${seconds(to)}${note === "" ? "" : ` (${note})`}`,
    ),
    ...slowest(probes),
    ...countsOf(
      probes.map(({ mode, outcome, ttl }) => `${mode}: ${outcome}${ttl === undefined ? "" : `, TTL ${ttl}`}`),
    ),
  ];
}

function slowest(probes: readonly ProbeResult[]): string[] {
  const answered = probes.filter(({ outcome }) => outcome === "answer").map(({ tookMs }) => tookMs);
  return answered.length === 0 ? [] : [`    slowest answer: ${Math.round(Math.max(...answered))} ms`];
}

// Notes that only contain a container name or an amount are not grouped.
function noteOfKind(note: string): string {
  return note === "" || /^c\d+$|MB to spare|^limit \d+$|hours$/.test(note) ? "" : ` (${note})`;
}

function countsOf(words: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].toSorted(byWord).map(([word, count]) => `    ${count} ${word}`);
}

function byWord([a]: readonly [string, number], [b]: readonly [string, number]): number {
  return a < b ? -1 : 1;
}

function tallyText({ probes, byDns11, byDocker, lost }: Tally): string {
  return `${probes} probes, ${byDns11} answered by dns11, ${byDocker} by Docker, ${lost} lost`;
}

function costText({ first, last, most }: Supervisor["costs"]): string[] {
  const text = ({ rssBytes, descriptors }: { rssBytes: number; descriptors: number }): string =>
    `${(rssBytes / MEGABYTE).toFixed(0)} MB and ${descriptors} descriptors`;
  return [
    `dns11 used at most ${text(most)}; its last process ${first === undefined ? "?" : text(first)} when ready, ` +
      `${last === undefined ? "?" : text(last)} at the end`,
  ];
}
