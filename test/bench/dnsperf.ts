// Owns the asking with dnsperf from inside a container: as fast as answers come, or at a rate that leaves everybody time.
// Delays are read from the second: with a hundred questions always out, the delay is a hundred over the speed, and
// tells nothing new. dnsperf 2.10 prints the delay of each answer (-v), but no quantiles of them.

import { stdoutOf } from "../support/program/command.ts";
import type { NetworkContext } from "../support/rig/netns.ts";
import { cpuSeconds } from "./cpu-time.ts";
import { quantile } from "./figures.ts";
import { RESOLVER } from "./redirect.ts";
import type { Sample } from "./tally.ts";

export type DnsperfInput = {
  // A question a line, read again and again.
  readonly file: string;
  // What each of them has to end with.
  readonly rcode: "NOERROR" | "NXDOMAIN";
  readonly threads?: number;
};

// Eight sockets, a hundred questions out at any time.
const AT_ONCE = ["-c", "8", "-q", "100"];
export const STEADILY_PER_SECOND = 2_000;
const LATE_SECONDS = 1;
// An asker that waits for a processor would take that for the server's delay: it has one as soon as it wants one, whoever
// is busy. Being nice is not enough, for among groups of processes (autogroup) it counts for nothing.
const FIRST = ["chrt", "--rr", "1"];

// As fast as answers come; the kernel says what the server used meanwhile.
export async function atFullSpeed(client: NetworkContext, input: DnsperfInput, pid: number, seconds: number): Promise<Sample> {
  const before = cpuSeconds(pid);
  const text = await dnsperf(client, input, seconds, [...AT_ONCE, "-T", String(input.threads ?? 1)]);
  const used = cpuSeconds(pid) - before;
  checkAnswers(text, input);
  const completed = numberIn(text, /Queries completed:\s+(\d+)/);
  return {
    perSecond: numberIn(text, /Queries per second:\s+([\d.]+)/),
    cpuMicros: (used / completed) * 1e6,
    lost: numberIn(text, /Queries lost:\s+(\d+)/),
  };
}

export async function steadily(
  client: NetworkContext,
  input: DnsperfInput,
  seconds: number,
  perSecond = STEADILY_PER_SECOND,
): Promise<Sample> {
  const args = [...AT_ONCE, "-Q", String(perSecond), "-v"];
  const text = await dnsperf(client, input, seconds, args, FIRST);
  checkAnswers(text, input);
  const delaysMs = [...text.matchAll(/^> [A-Z]+ .* ([\d.]+)$/gm)].map(([, delay]) => Number(delay) * 1_000);
  return {
    p50Ms: quantile(delaysMs, 0.5),
    p99Ms: quantile(delaysMs, 0.99),
    lost: numberIn(text, /Queries lost:\s+(\d+)/),
  };
}

export type FloodOptions = { readonly seconds: number; readonly file: string; readonly count: number };

// Ten times as many questions out as a server could want, whatever comes of them; bounded in count as well as in time.
export async function flood(
  client: NetworkContext,
  pid: number,
  { seconds, file, count }: FloodOptions,
): Promise<Sample> {
  const before = cpuSeconds(pid);
  const args = ["-c", "8", "-q", "1000", "-n", String(count)];
  const text = await dnsperf(client, { file }, seconds, args);
  const completed = numberIn(text, /Queries completed:\s+(\d+)/);
  return {
    perSecond: numberIn(text, /Queries per second:\s+([\d.]+)/),
    cpuMicros: ((cpuSeconds(pid) - before) / completed) * 1e6,
    lost: numberIn(text, /Queries lost:\s+(\d+)/),
  };
}

async function dnsperf(
  client: NetworkContext,
  { file }: { readonly file: string },
  seconds: number,
  args: readonly string[],
  prefix: readonly string[] = [],
): Promise<string> {
  const common = ["-s", RESOLVER, "-d", file, "-l", String(seconds), "-t", String(LATE_SECONDS)];
  const [command = "", ...rest] = [...prefix, "dnsperf", ...common, ...args];
  return stdoutOf(await client.enter(command, rest), "dnsperf");
}

function checkAnswers(text: string, { rcode }: DnsperfInput): void {
  if (new RegExp(`Response codes:\\s+${rcode} \\d+ \\(100\\.00%\\)`).test(text)) return;
  const summary = text.slice(Math.max(0, text.indexOf("Statistics:")));
  throw new Error(`dnsperf got no answers, or others than ${rcode}:\n${summary}`);
}

function numberIn(text: string, pattern: RegExp): number {
  return Number(pattern.exec(text)?.[1] ?? Number.NaN);
}
