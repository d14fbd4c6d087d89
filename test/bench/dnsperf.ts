// One measurement: dnsperf asks 127.0.0.11 inside a container, and the kernel says what the server used meanwhile.

import { readFileSync } from "node:fs";

import { stdoutOf } from "../support/command.ts";
import type { Container } from "../support/container.ts";
import { type Row, median, spread } from "./figures.ts";

const CLOCK_TICKS = 100;

export type Sample = { readonly perSecond: number; readonly cpuMicros: number; readonly lost: number };

// The file has a question a line, and is read again and again.
export async function measure(client: Container, questionFile: string, pid: number, seconds: number): Promise<Sample> {
  const before = cpuSeconds(pid);
  const args = ["-s", "127.0.0.11", "-d", questionFile, "-l", String(seconds), "-c", "8", "-q", "100", "-T", "1"];
  const text = stdoutOf(await client.enter("dnsperf", args), "dnsperf");
  const used = cpuSeconds(pid) - before;
  const completed = Number(/Queries completed:\s+(\d+)/.exec(text)?.[1] ?? 0);
  const lost = Number(/Queries lost:\s+(\d+)/.exec(text)?.[1] ?? 0);
  const perSecond = Number(/Queries per second:\s+([\d.]+)/.exec(text)?.[1] ?? 0);
  const isRight = /Response codes:\s+NOERROR \d+ \(100\.00%\)/.test(text);
  if (completed === 0 || !isRight) throw new Error(`dnsperf got no answers, or others than it should:\n${text}`);
  return { perSecond, cpuMicros: (used / completed) * 1e6, lost };
}

// Of the whole process: user and system time, in the kernel's accounting.
function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS;
}

export function sideRow(what: string, samples: readonly Sample[]): Row {
  const rates = samples.map(({ perSecond }) => perSecond);
  const costs = samples.map(({ cpuMicros }) => cpuMicros);
  const lost = samples.reduce((sum, sample) => sum + sample.lost, 0);
  return { what, measured: `${spread(rates, 0)} queries/s, ${spread(costs)} CPU us a query, ${lost} lost` };
}

export type Bound = { readonly least?: number; readonly most?: number };

// The median over the rounds, each of which had both.
export function ratioRow(
  what: string,
  figure: "perSecond" | "cpuMicros",
  [ours, theirs]: readonly [readonly Sample[], readonly Sample[]],
  { least, most }: Bound = {},
): Row {
  const ratio = median(ours.map((sample, round) => sample[figure] / (theirs[round]?.[figure] ?? Number.NaN)));
  return {
    what,
    measured: ratio.toFixed(2),
    ...(least !== undefined && { target: `>= ${least}`, isReached: ratio >= least }),
    ...(most !== undefined && { target: `<= ${most}`, isReached: ratio <= most }),
  };
}
