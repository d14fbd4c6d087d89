// Load from dnsperf inside a container: at full speed, or at a steady rate below capacity. Latency is measured at the
// steady rate: with a hundred queries always in flight it is a hundred divided by the speed. dnsperf 2.10 prints the
// latency of each reply (-v), but no quantiles.

import { stdoutOf } from "../support/program/command.ts";
import type { NetworkContext } from "../support/rig/netns.ts";
import { cpuSeconds } from "./cpu-time.ts";
import { quantile } from "./figures.ts";
import { RESOLVER } from "./redirect.ts";
import type { Sample } from "./tally.ts";

export type DnsperfInput = {
  // File with a query a line, read in a loop.
  readonly file: string;
  // Expected rcode of every reply.
  readonly rcode: "NOERROR" | "NXDOMAIN";
  readonly threads?: number;
  readonly server?: string;
};

// Eight sockets, a hundred queries in flight.
const AT_ONCE = ["-c", "8", "-q", "100"];
export const STEADILY_PER_SECOND = 2_000;
const TIMEOUT_SECONDS = 1;
// At most.
const ONCE_SECONDS = 10;
// A client that waits for a CPU would attribute that to the server, so it runs with real-time priority. nice is not
// enough: it has no effect across autogroups.
export const REALTIME = ["chrt", "--rr", "1"];

// At full speed; the kernel reports the server's CPU time.
export async function atFullSpeed(
  client: NetworkContext,
  input: DnsperfInput,
  pid: number,
  seconds: number,
): Promise<Sample> {
  return await measured(client, input, pid, seconds, ["-T", String(input.threads ?? 1)]);
}

// Each query of the file once.
export async function once(client: NetworkContext, input: DnsperfInput, pid: number): Promise<Sample> {
  return await measured(client, input, pid, ONCE_SECONDS, ["-n", "1"]);
}

async function measured(
  client: NetworkContext,
  input: DnsperfInput,
  pid: number,
  seconds: number,
  args: readonly string[],
): Promise<Sample> {
  const before = cpuSeconds(pid);
  const text = await dnsperf(client, input, seconds, [...AT_ONCE, ...args]);
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
  const text = await dnsperf(client, input, seconds, args, REALTIME);
  checkAnswers(text, input);
  const delaysMs = [...text.matchAll(/^> [A-Z]+ .* ([\d.]+)$/gm)].map(([, delay]) => Number(delay) * 1_000);
  return {
    p50Ms: quantile(delaysMs, 0.5),
    p99Ms: quantile(delaysMs, 0.99),
    lost: numberIn(text, /Queries lost:\s+(\d+)/),
  };
}

export type FloodOptions = { readonly seconds: number; readonly file: string; readonly count: number };

// Ten times as many queries in flight as a server could handle, whatever their outcome; bounded in count and in time.
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
  { file, server = RESOLVER }: Pick<DnsperfInput, "file" | "server">,
  seconds: number,
  args: readonly string[],
  prefix: readonly string[] = [],
): Promise<string> {
  const common = ["-s", server, "-d", file, "-l", String(seconds), "-t", String(TIMEOUT_SECONDS)];
  const [command = "", ...rest] = [...prefix, "dnsperf", ...common, ...args];
  return stdoutOf(await client.enter(command, rest), "dnsperf");
}

function checkAnswers(text: string, { rcode }: DnsperfInput): void {
  if (new RegExp(`Response codes:\\s+${rcode} \\d+ \\(100\\.00%\\)`).test(text)) return;
  const summary = text.slice(Math.max(0, text.indexOf("Statistics:")));
  throw new Error(`dnsperf received no replies, or not only ${rcode}:\n${summary}`);
}

function numberIn(text: string, pattern: RegExp): number {
  return Number(pattern.exec(text)?.[1] ?? Number.NaN);
}
