// A container's queries while the process that serves it attaches 500 others, as many as are done in the time. Each of them changes
// names, and with names all answers of the kernel end, so the process is asked again after each. Real namespaces and rules, no
// engine: it would take minutes to start so many.

import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

import { warmThreadPool } from "../../src/container/namespace/namespace-runner.ts";
import { preallocateDescriptors } from "../../src/kernel/descriptors.ts";
import type { FeatureCode } from "../../src/features/contract.ts";
import { loadFeatures } from "../../src/features/load.ts";
import { startEngineSide } from "../support/program/engine-side.ts";
import type { Bench } from "./bench.ts";
import { NETWORK, factOf, untilByKernel } from "./crowded-network.ts";
import { type Row, readable, spreadOf } from "./figures.ts";
import type { LeanAsker } from "./lean-asker.ts";
import { makeNetnses, removeNetnses } from "./namespaces.ts";
import type { Sample } from "./tally.ts";
import { hasTimeFor } from "./turns.ts";

const STARTS = 500;
// What a process does for the first time compiles its code as well.
const REHEARSED = 100;
// How long the one is measured: as the rehearsal shows that it takes, with some more, but not longer than this.
const SECONDS_MAX = 4;
const MORE = 1.5;
const AHEAD_MS = 300;
const STARTING = `container name, A, while ${STARTS} containers are attached`;

type Start = { readonly sample: Sample; readonly attached: number };

export async function benchStarts(bench: Bench, lean: LeanAsker): Promise<Row[]> {
  const { tally, pace } = bench;
  const paths = makeNetnses(STARTS + 1);
  try {
    preallocateDescriptors();
    await warmThreadPool();
    const seconds = await rehearse(lean, paths.slice(0, REHEARSED + 1));
    const attached: number[] = [];
    for (let round = 0; round < pace.rounds && hasTimeFor(round, bench); round++) {
      console.error(`bench: ${STARTING}, round ${round + 1} of ${pace.rounds}`);
      for (const server of ["process", "kernel"] as const) {
        const extraOf = server === "kernel" ? await loadFeatures() : undefined;
        const found = await start(lean, paths, { seconds, extraOf });
        tally.add({ row: STARTING, server }, found.sample);
        attached.push(found.attached);
      }
    }
    const measured = `${readable(spreadOf(attached), 0)} of ${STARTS}`;
    return [{ what: `containers that were attached while one was measured for ${seconds.toFixed(1)} s`, measured }];
  } finally {
    removeNetnses(paths);
  }
}

// Returns for how long to measure.
async function rehearse(lean: LeanAsker, paths: readonly string[]): Promise<number> {
  let tookMs = 0;
  await start(lean, paths, { seconds: 1, onAttached: (ms) => (tookMs = ms) });
  return Math.min(SECONDS_MAX, (AHEAD_MS + tookMs * (STARTS / REHEARSED) * MORE) / 1_000);
}

type StartOptions = {
  readonly seconds: number;
  readonly extraOf?: readonly FeatureCode[] | undefined;
  // Called when all are attached, with the time that it took. Without it, what is not attached in time is only counted.
  readonly onAttached?: (ms: number) => void;
};

async function start(
  lean: LeanAsker,
  paths: readonly string[],
  { seconds, extraOf = [], onAttached }: StartOptions,
): Promise<Start> {
  const { way, attached, close } = startEngineSide({ extraOf });
  try {
    way.directory.putNetwork(NETWORK);
    const [first, ...others] = paths.map((path, index) => factOf(index, path));
    if (first === undefined) throw new Error("no namespaces");
    way.roster.put(first);
    await attached.until(1);
    if (extraOf.length > 0) await untilByKernel(way);
    const asking = lean.steadily({ netnsPath: first.sandboxKey, name: first.name }, seconds);
    await sleep(AHEAD_MS);
    const startMs = performance.now();
    // The engine answers one inspect after the other.
    for (const fact of others) {
      await nextTurn();
      way.roster.put(fact);
    }
    if (onAttached !== undefined) await attached.until(paths.length);
    onAttached?.(performance.now() - startMs);
    const sample = await asking;
    const states = [...way.reconciler.attachments()].map(([, { state }]) => state.kind);
    return { sample, attached: states.filter((kind) => kind === "attached").length - 1 };
  } finally {
    await way.reconciler.stop();
    close();
  }
}
