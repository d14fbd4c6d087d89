// Load from the bench's own C programs, for what dnsperf cannot do: first at full speed, then at a steady rate below
// capacity, which measures latency.

import { cpuSeconds } from "./cpu-time.ts";
import type { Pace } from "./pace.ts";
import type { Sample } from "./tally.ts";
import type { Turn } from "./turns.ts";
import { warmUp } from "./warm-up.ts";

// Output of such a program.
export type LoadResult = {
  readonly queries: number;
  readonly answered: number;
  readonly wrong: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
};

// Runs the program for this many seconds and returns its output.
export type RunLoad = (how: "steadily" | "at full speed", seconds: number) => Promise<string>;

export async function sampleOf(runLoad: RunLoad, { isFresh }: Turn, pid: number, pace: Pace): Promise<Sample> {
  if (isFresh) await runLoad("at full speed", pace.startSeconds);
  await warmUp(async () => {
    const { answered, seconds } = parseLoadResult(await runLoad("at full speed", pace.warmSeconds));
    return answered / seconds;
  });
  const before = cpuSeconds(pid);
  const full = parseLoadResult(await runLoad("at full speed", pace.seconds));
  const used = cpuSeconds(pid) - before;
  const steady = parseLoadResult(await runLoad("steadily", pace.steadySeconds));
  return {
    perSecond: full.answered / full.seconds,
    cpuMicros: (used / full.answered) * 1e6,
    p50Ms: steady.p50Ms,
    p99Ms: steady.p99Ms,
    lost: full.queries - full.answered + steady.queries - steady.answered,
  };
}

export function parseLoadResult(text: string): LoadResult {
  const result = JSON.parse(text) as LoadResult;
  if (result.answered === 0 || result.wrong > 0) throw new Error(`no answers, or wrong ones: ${text}`);
  return result;
}
