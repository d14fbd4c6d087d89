// Owns the question of what a container's flood costs another one: the neighbour asks a hundred questions a second for a
// container's name, alone, then while the flood is of such names, then while it is of names that have to be asked for
// upstream. The flood is bounded in time and in count, and what becomes of its own questions is only counted.

import { createNetwork, runContainer } from "../support/engine/container.ts";
import type { Engine } from "../support/engine/engine.ts";
import { pause } from "../support/rig/wait.ts";
import { type FloodOptions, flood, steadily } from "./dnsperf.ts";
import type { Pace } from "./pace.ts";
import type { Questions } from "./questions.ts";
import type { Tally } from "./tally.ts";
import { takeRounds } from "./turns.ts";

export const NEIGHBOUR = {
  alone: "a neighbour's 100 queries/s: alone",
  floodedByNames: "a neighbour's 100 queries/s: others flood with names",
  floodedByMisses: "a neighbour's 100 queries/s: others flood with misses",
} as const;
const FLOODS = { names: "the flood of names", misses: "the flood of misses" } as const;

const PER_SECOND = 100;
const NETWORK = "fair";
const FLOOD_QUERIES_MAX = 1_000_000;
// The flood begins before the neighbour's questions and ends after them.
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
  const ask = async () => await steadily(neighbour, { file: names, rcode: "NOERROR" }, seconds, PER_SECOND);

  await takeRounds(engine, { what: "a neighbour", count: rounds }, async ({ server, pidAt }) => {
    const pid = pidAt(undefined) ?? 0;
    const under = async (options: Omit<FloodOptions, "seconds">) => {
      const flooding = flood(flooder, pid, { seconds: floodSeconds, ...options });
      const asking = pause(AHEAD_MS).then(ask);
      return await Promise.all([asking, flooding]);
    };
    if (server === "dns11")
      await flood(flooder, pid, { seconds: LONGER_SECONDS, file: names, count: FLOOD_QUERIES_MAX });
    tally.add({ row: NEIGHBOUR.alone, server }, await ask());
    const [asked, flooded] = await under({ file: names, count: FLOOD_QUERIES_MAX });
    tally.add({ row: NEIGHBOUR.floodedByNames, server }, asked);
    tally.add({ row: FLOODS.names, server }, flooded);
    const [askedToo, missed] = await under({ file: questions.uncached(floodSeconds), count: 1 });
    tally.add({ row: NEIGHBOUR.floodedByMisses, server }, askedToo);
    tally.add({ row: FLOODS.misses, server }, missed);
  });
}
