// Owns the asking with a program of the bench's own, where dnsperf does not serve: as fast as answers come, then at a rate
// that leaves everybody time, from which the delays are read.

import { cpuSeconds } from "./cpu-time.ts";
import type { Pace } from "./pace.ts";
import type { Server } from "./server.ts";
import type { Sample } from "./tally.ts";

// What such a program prints.
type LoadResult = {
  readonly asked: number;
  readonly answered: number;
  readonly wrong: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
};

// Asks for so many seconds, steadily or as fast as it goes, and returns what the program printed.
export type RunLoad = (how: "steadily" | "at full speed", seconds: number) => Promise<string>;

// dns11 has just been started, and is compiled as it runs; the others have been running for long.
export async function sampleOf(runLoad: RunLoad, server: Server, pid: number, pace: Pace): Promise<Sample> {
  parseLoadResult(await runLoad("at full speed", server === "dns11" ? pace.startSeconds : pace.warmSeconds));
  const before = cpuSeconds(pid);
  const full = parseLoadResult(await runLoad("at full speed", pace.seconds));
  const used = cpuSeconds(pid) - before;
  const steady = parseLoadResult(await runLoad("steadily", pace.steadySeconds));
  return {
    perSecond: full.answered / full.seconds,
    cpuMicros: (used / full.answered) * 1e6,
    p50Ms: steady.p50Ms,
    p99Ms: steady.p99Ms,
    lost: full.asked - full.answered + steady.asked - steady.answered,
  };
}

function parseLoadResult(text: string): LoadResult {
  const result = JSON.parse(text) as LoadResult;
  if (result.answered === 0 || result.wrong > 0) throw new Error(`No answers, or wrong ones: ${text}`);
  return result;
}
