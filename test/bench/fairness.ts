// Effect of a container's query flood on its neighbour: the neighbour sends a hundred queries a second for a
// container's name, alone, then during a flood of such names, then during a flood of cache misses. The flood is bounded
// in time and count, and its own outcomes are only counted. The lean asker, where it is wanted, sends as many beside dnsperf.

import { createNetwork, runContainer } from "../support/engine/container.ts";
import { pause } from "../support/rig/wait.ts";
import type { Bench } from "./bench.ts";
import { type FloodOptions, flood, steadily } from "./dnsperf.ts";
import type { LeanAsker } from "./lean-asker.ts";
import type { Server } from "./server.ts";
import { takeRounds } from "./turns.ts";

export const NEIGHBOUR = {
  alone: "neighbour at 100 queries/s: alone",
  floodedByNames: "neighbour at 100 queries/s: flood of container names",
  floodedByMisses: "neighbour at 100 queries/s: flood of cache misses",
} as const;
const FLOODS = { names: "the flood of container names", misses: "the flood of cache misses" } as const;

const PER_SECOND = 100;
const NETWORK = "fair";
const FLOOD_QUERIES_MAX = 1_000_000;
// The flood starts before the neighbour's queries and ends after them.
const AHEAD_MS = 300;
const LONGER_SECONDS = 0.7;

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
  const floodSeconds = seconds + LONGER_SECONDS;
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
  });
}
