// Container names answered by the kernel, beside the same names answered by the process, by dockerd, by other name servers and
// by the floor, in the same container at the same address, in one run. By dnsperf, and by an asker that takes less time for a query
// than the kernel does. With the process stopped, whatever is answered is answered by the kernel alone. HINFO is answered by the
// process in any case, but with answers: kernel its packets are not tracked.

import type { Bench } from "./bench.ts";
import { benchCrowd } from "./crowd.ts";
import { takeTurn, withServers } from "./data-plane.ts";
import { atFullSpeed } from "./dnsperf.ts";
import { NEIGHBOUR, benchFairness, byLeanAsker } from "./fairness.ts";
import { type Row, readable, spreadOf } from "./figures.ts";
import { benchStarts } from "./kernel-starts.ts";
import { LeanAsker } from "./lean-asker.ts";
import { compile } from "./native.ts";
import type { Pace } from "./pace.ts";
import type { Ours } from "./server.ts";
import type { Column, Tally } from "./tally.ts";
import { Testbed } from "./testbed.ts";
import { takeRounds } from "./turns.ts";
import { ROWS, kernelWorkloads } from "./workloads.ts";

// A keeper would end the process that is stopped.
const ourForm = (answers: "kernel" | "process"): Ours => ({
  server: answers,
  settings: { keeper: "off" },
  env: { DNS11_ANSWERS: answers },
});
const OURS = [ourForm("process"), ourForm("kernel")];
// So that the whole part takes less than seven minutes.
const MOST = { rounds: 3, seconds: 0.4, steadySeconds: 0.2, warmSeconds: 0.25, neighbourSeconds: 0.8 } as const;

const LEAN = {
  full: "container name, A, lean asker on each core",
  alone: "container name, A, one at a time",
  cachedFull: "forwarded, cache hit, lean asker on each core",
  cachedAlone: "forwarded, cache hit, one at a time",
} as const;
const CACHED_NAME = "cached-0.test";
// On a busy machine some rows have fewer rounds.
const ROUNDS_MS = 240_000;
const STOPPED = "container name, A, process stopped";

const SPEED_MIN = 2;
const CACHED_MIN = 1.7;
const LATENCY_MAX = 1 / 3;
const CACHED_MS_MAX = 0.01;
const NEIGHBOUR_MS_MAX = 1;

export async function benchKernel(full: Pace): Promise<{ readonly tally: Tally; readonly rows: readonly Row[] }> {
  const pace = { ...full };
  for (const key of Object.keys(MOST) as (keyof typeof MOST)[]) pace[key] = Math.min(full[key], MOST[key]);
  const rows: Row[] = [];
  const tally = await withServers({ ours: OURS, pace, endMs: performance.now() + ROUNDS_MS }, async (bench) => {
    const lean = await LeanAsker.compile(bench.engine.folder);
    await benchNames(bench, lean);
    await benchCrowd(bench);
    await benchFairness(bench, lean);
    if (lean !== undefined) rows.push(...(await benchStarts(bench, lean)));
  });
  return { tally, rows: [...rows, ...targetsOf(tally)] };
}

async function benchNames(bench: Bench, lean: LeanAsker | undefined): Promise<void> {
  const { engine, tally, questions, pace } = bench;
  const floor = await compile("floor", engine.folder);
  await using few = await Testbed.make(engine, { network: "few", names: 10, floor });
  await using many = await Testbed.make(engine, { network: "many", names: 10_000 });
  const workloads = kernelWorkloads(questions, few, many);
  const file = questions.addresses(few.hosts);
  const asked = { netnsPath: few.client.netnsPath, name: few.hosts[0]?.name ?? "" };
  await takeRounds(bench, { what: "kernel", testbeds: [few, many] }, async (turn, round) => {
    const { server, pidAt } = turn;
    await takeTurn(bench, workloads, turn, round);
    const pid = pidAt(few);
    if (pid === undefined) return;
    if (lean !== undefined) {
      tally.add({ row: LEAN.full, server }, await lean.atFullSpeed(asked, pid, pace.seconds));
      tally.add({ row: LEAN.alone, server }, await lean.alone(asked, pace.steadySeconds));
      if (server !== "floor") {
        const cached = { ...asked, name: CACHED_NAME };
        tally.add({ row: LEAN.cachedFull, server }, await lean.atFullSpeed(cached, pid, pace.seconds));
        tally.add({ row: LEAN.cachedAlone, server }, await lean.alone(cached, pace.steadySeconds));
      }
    }
    if (server !== "kernel") return;
    process.kill(pid, "SIGSTOP");
    try {
      // Briefly: a process that hangs ends.
      const sample = await atFullSpeed(few.client, { file, rcode: "NOERROR" }, pid, pace.seconds);
      tally.add({ row: STOPPED, server }, sample);
    } finally {
      process.kill(pid, "SIGCONT");
    }
  });
}

function targetsOf(tally: Tally): Row[] {
  const against = (row: string, column: Column): number[] =>
    tally.ratios({ row, server: "kernel" }, { row, server: "floor" }, column);
  const p99sOf = (row: string): number[] => tally.values({ row, server: "kernel" }, "p99Ms");
  const target = (what: string, values: readonly number[], unit: string, bound: Bound): Row[] => {
    if (values.length === 0) return [];
    const spread = spreadOf(values);
    const words = bound.least === undefined ? `<= ${(bound.most ?? 0).toFixed(2)}` : `>= ${bound.least}`;
    const isReached = spread.median >= (bound.least ?? -Infinity) && spread.median <= (bound.most ?? Infinity);
    return [{ what, measured: `${readable(spread, 2)} ${unit}`, target: `${words} ${unit}`, isReached }];
  };
  const besideUnbound = (row: string): number[] =>
    tally.ratios({ row, server: "kernel" }, { row, server: "unbound" }, "perSecond");
  const cachedMs = tally.values({ row: LEAN.cachedAlone, server: "kernel" }, "p50Ms");
  return [
    ...target("cached names, queries/s by dnsperf: kernel to unbound", besideUnbound(ROWS.cached), "x", {
      least: CACHED_MIN,
    }),
    ...target("cached names, queries/s by the lean asker: kernel to unbound", besideUnbound(LEAN.cachedFull), "x", {
      least: CACHED_MIN,
    }),
    ...target("cached names one at a time, p50", cachedMs, "ms", { most: CACHED_MS_MAX }),
    ...target("queries/s by dnsperf: kernel to floor", against(ROWS.address, "perSecond"), "x", { least: SPEED_MIN }),
    ...target("queries/s by the lean asker: kernel to floor", against(LEAN.full, "perSecond"), "x", {
      least: SPEED_MIN,
    }),
    ...target("one at a time, p50: kernel to floor", against(LEAN.alone, "p50Ms"), "x", { most: LATENCY_MAX }),
    ...[NEIGHBOUR.floodedByNames, NEIGHBOUR.floodedByMisses].flatMap((row) =>
      [row, byLeanAsker(row)].flatMap((each) => target(`p99, ${each}`, p99sOf(each), "ms", { most: NEIGHBOUR_MS_MAX })),
    ),
  ];
}

type Bound = { readonly least?: number; readonly most?: number };
