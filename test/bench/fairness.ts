// Effect of a container's query flood on its neighbour: the neighbour sends a hundred queries a second for a
// container's name, alone, then during a flood of such names, then during a flood of cache misses. The flood is bounded
// in time and count, and its own outcomes are only counted. The lean asker, where it is wanted, sends as many beside dnsperf.

import { createNetwork, runContainer } from "../support/engine/container.ts";
import { pause } from "../support/rig/wait.ts";
import type { Bench } from "./bench.ts";
import { type FloodOptions, flood, steadily } from "./dnsperf.ts";
import type { LeanAsker } from "./lean-asker.ts";
import type { Server } from "./server.ts";
import { startSlowServer } from "./slow-server.ts";
import { takeRounds } from "./turns.ts";

export const NEIGHBOUR = {
  alone: "neighbour at 100 queries/s: alone",
  floodedByNames: "neighbour at 100 queries/s: flood of container names",
  floodedByMisses: "neighbour at 100 queries/s: flood of cache misses",
  slow: "neighbour at 100 queries/s to a slow server: alone",
  slowAndFlooded: "neighbour at 100 queries/s to a slow server: flood of cache misses there",
} as const;
const FLOODS = {
  names: "the flood of container names",
  misses: "the flood of cache misses",
  slow: "the flood of cache misses at a slow server",
} as const;

const PER_SECOND = 100;
const NETWORK = "fair";
const SLOW_SERVER = "10.53.0.2";
const FLOOD_QUERIES_MAX = 1_000_000;
// The flood starts before the neighbour's queries and ends after them.
const AHEAD_MS = 300;
const LONGER_SECONDS = 0.7;
// dns11 learns in half a second how many queries a slow server takes.
const LEARNING_MS = 1_000;
const SLOW_LONGER_SECONDS = 1.4;

// The same neighbour, as the lean asker sees it.
export function byLeanAsker(row: string): string {
  return `${row}, lean asker`;
}

export async function benchFairness(bench: Bench, lean?: LeanAsker): Promise<void> {
  const { engine, questions, tally } = bench;
  const { neighbourSeconds: seconds } = bench.pace;
  await createNetwork(engine, NETWORK);
  const neighbour = await runContainer(engine, { name: "neighbour", networks: [NETWORK] });
  const flooder = await runContainer(engine, { name: "flooder", networks: [NETWORK] });
  const names = questions.addresses([{ name: "neighbour", address: neighbour.address(NETWORK) }]);
  await using _slowServer = await startSlowServer(engine, SLOW_SERVER);
  const toSlowServer = { networks: [NETWORK], dns: [SLOW_SERVER] };
  const slowed = await runContainer(engine, toSlowServer);
  const slowFlooder = await runContainer(engine, toSlowServer);
  // The slow server denies every name without an SOA, so nothing is cached.
  const unknown = questions.nxdomain();
  const floodSeconds = seconds + LONGER_SECONDS;
  const slowSeconds = seconds + SLOW_LONGER_SECONDS;
  const asked = { netnsPath: neighbour.netnsPath, name: "neighbour" };
  const measure = async (row: string, server: Server): Promise<void> => {
    const [sample, leanSample] = await Promise.all([
      steadily(neighbour, { file: names, rcode: "NOERROR" }, seconds, PER_SECOND),
      lean?.steadily(asked, seconds, PER_SECOND),
    ]);
    tally.add({ row, server }, sample);
    if (leanSample !== undefined) tally.add({ row: byLeanAsker(row), server }, leanSample);
  };

  await takeRounds(bench, { what: "fairness" }, async ({ server, isFresh, pidAt }) => {
    const pid = pidAt(undefined) ?? 0;
    const measureSlow = async (row: string): Promise<void> => {
      const input = { file: unknown, rcode: "NXDOMAIN" } as const;
      tally.add({ row, server }, await steadily(slowed, input, seconds, PER_SECOND));
    };
    const under = async (row: string, options: Omit<FloodOptions, "seconds">) => {
      const flooding = flood(flooder, pid, { seconds: floodSeconds, ...options });
      const measuring = pause(AHEAD_MS).then(async () => await measure(row, server));
      const [flooded] = await Promise.all([flooding, measuring]);
      return flooded;
    };
    if (isFresh) await flood(flooder, pid, { seconds: LONGER_SECONDS, file: names, count: FLOOD_QUERIES_MAX });
    await measure(NEIGHBOUR.alone, server);
    const flooded = await under(NEIGHBOUR.floodedByNames, { file: names, count: FLOOD_QUERIES_MAX });
    tally.add({ row: FLOODS.names, server }, flooded);
    const missed = await under(NEIGHBOUR.floodedByMisses, { file: questions.uncached(floodSeconds), count: 1 });
    tally.add({ row: FLOODS.misses, server }, missed);
    await measureSlow(NEIGHBOUR.slow);
    const [slow] = await Promise.all([
      flood(slowFlooder, pid, {
        seconds: slowSeconds,
        file: questions.uncached(slowSeconds),
        count: 1,
      }),
      pause(LEARNING_MS).then(async () => await measureSlow(NEIGHBOUR.slowAndFlooded)),
    ]);
    tally.add({ row: FLOODS.slow, server }, slow);
  });
}
