// Effect of a container's query flood on its neighbour: the neighbour sends a hundred queries a second for a
// container's name, alone, then during a flood of such names, then during a flood of cache misses. The flood is bounded
// in time and count, and its own outcomes are only counted.

import { createNetwork, runContainer } from "../support/engine/container.ts";
import type { Engine } from "../support/engine/engine.ts";
import { pause } from "../support/rig/wait.ts";
import { type FloodOptions, flood, steadily } from "./dnsperf.ts";
import type { Pace } from "./pace.ts";
import type { Questions } from "./questions.ts";
import type { Tally } from "./tally.ts";
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

export async function benchFairness(
  engine: Engine,
  questions: Questions,
  tally: Tally,
  { rounds, neighbourSeconds: seconds }: Pace,
): Promise<void> {
  await createNetwork(engine, NETWORK);
  const neighbour = await runContainer(engine, { name: "neighbour", networks: [NETWORK] });
  const flooder = await runContainer(engine, { name: "flooder", networks: [NETWORK] });
  const names = questions.addresses([{ name: "neighbour", address: neighbour.address(NETWORK) }]);
  const floodSeconds = seconds + LONGER_SECONDS;
  const measure = async () => await steadily(neighbour, { file: names, rcode: "NOERROR" }, seconds, PER_SECOND);

  await takeRounds(engine, { what: "fairness", count: rounds }, async ({ server, pidAt }) => {
    const pid = pidAt(undefined) ?? 0;
    const under = async (options: Omit<FloodOptions, "seconds">) => {
      const flooding = flood(flooder, pid, { seconds: floodSeconds, ...options });
      const measuring = pause(AHEAD_MS).then(measure);
      return await Promise.all([measuring, flooding]);
    };
    if (server === "dns11")
      await flood(flooder, pid, { seconds: LONGER_SECONDS, file: names, count: FLOOD_QUERIES_MAX });
    tally.add({ row: NEIGHBOUR.alone, server }, await measure());
    const [sampleWithNames, flooded] = await under({ file: names, count: FLOOD_QUERIES_MAX });
    tally.add({ row: NEIGHBOUR.floodedByNames, server }, sampleWithNames);
    tally.add({ row: FLOODS.names, server }, flooded);
    const [sampleWithMisses, missed] = await under({ file: questions.uncached(floodSeconds), count: 1 });
    tally.add({ row: NEIGHBOUR.floodedByMisses, server }, sampleWithMisses);
    tally.add({ row: FLOODS.misses, server }, missed);
  });
}
