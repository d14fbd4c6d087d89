// Attach benchmark: from the facts of a container to verified rules, in real namespaces, one by one and a thousand at
// once; and the memory of each. There is no engine: its responses are the starting point.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { KeeperLink } from "../../src/keeper/keeper-link.ts";
import { warmThreadPool } from "../../src/container/namespace/namespace-runner.ts";
import { loadFeatures } from "../../src/features/load.ts";
import { preallocateDescriptors } from "../../src/kernel/descriptors.ts";
import { startEngineSide } from "../support/program/engine-side.ts";
import { NETWORK, factOf, idOf } from "./crowded-network.ts";
import { removeNetnses, makeNetnses } from "./namespaces.ts";
import { type Row, median, quantile } from "./figures.ts";

const ONE_BY_ONE = 200;
const AT_ONCE = 1000;

export async function benchAttach(): Promise<Row[]> {
  const paths = makeNetnses(ONE_BY_ONE + AT_ONCE);
  try {
    preallocateDescriptors();
    await warmThreadPool();
    const { way, attached, close } = startEngineSide();
    way.directory.putNetwork(NETWORK);
    const idleBytes = settledRss();
    const times: number[] = [];
    for (const [index, path] of paths.slice(0, ONE_BY_ONE).entries()) {
      const startMs = performance.now();
      way.roster.put(factOf(index, path));
      await attached.until(index + 1);
      times.push(performance.now() - startMs);
    }
    for (let index = 0; index < ONE_BY_ONE; index++) way.roster.remove(idOf(index));
    await attached.until(0);
    const startMs = performance.now();
    // Other namespaces: the first ones are still being left.
    for (const [index, path] of paths.entries()) if (index >= ONE_BY_ONE) way.roster.put(factOf(index, path));
    await attached.until(AT_ONCE);
    const allMs = performance.now() - startMs;
    const perContainer = (settledRss() - idleBytes) / AT_ONCE;
    await way.reconciler.stop();
    close();
    const [alone, kept] = await besideKeeper(paths.slice(0, ONE_BY_ONE));
    const [byProcess, byKernel] = await besideKernelAnswers(paths.slice(0, ONE_BY_ONE));
    const [p50, p99] = [median(times), quantile(times, 0.99)];
    return [
      row("attach and verify, one by one, p50", `${p50.toFixed(2)} ms`, "<= 2 ms", p50 <= 2),
      row(
        "attach and verify with a keeper, one by one, p50",
        `${kept.toFixed(2)} ms (without ${alone.toFixed(2)} ms)`,
        "<= 0.2 ms more",
        kept - alone <= 0.2,
      ),
      row(
        "attach and verify with answers by the kernel, one by one, p50",
        `${byKernel.toFixed(2)} ms (without ${byProcess.toFixed(2)} ms)`,
        "<= 0.2 ms more",
        byKernel - byProcess <= 0.2,
      ),
      row("attach and verify, one by one, p99", `${p99.toFixed(2)} ms`, "<= 20 ms", p99 <= 20),
      row(`attach and verify, ${AT_ONCE} at once`, `${allMs.toFixed(0)} ms`, "<= 2000 ms", allMs <= 2000),
      row("memory per container", `${(perContainer / 1e3).toFixed(1)} kB`, "<= 40 kB", perContainer <= 40e3),
    ];
  } finally {
    removeNetnses(paths);
  }
}

async function besideKeeper(paths: readonly string[]): Promise<readonly [number, number]> {
  const folder = mkdtempSync(join(tmpdir(), "d11-bench-keeper-"));
  const nothing = (): void => undefined;
  const callbacks = {
    onEvent: nothing,
    onHandoverRequested: nothing,
    onHandoverCancelled: nothing,
    onKeeperLost: nothing,
    onHandoverCompleted: nothing,
  };
  const link = new KeeperLink({ socketPath: join(folder, "keeper.sock"), ...callbacks });
  link.start();
  const kept = startEngineSide({ keep: (namespace) => link.hold(namespace) });
  const medians = await alternately(paths, [startEngineSide(), kept]);
  link.end();
  rmSync(folder, { recursive: true, force: true });
  return medians;
}

async function besideKernelAnswers(paths: readonly string[]): Promise<readonly [number, number]> {
  return await alternately(paths, [startEngineSide(), startEngineSide({ extraOf: await loadFeatures() })]);
}

type Side = ReturnType<typeof startEngineSide>;

// The median attach time of each of two, in turn in the same namespaces. Ends both.
async function alternately(paths: readonly string[], sides: readonly [Side, Side]): Promise<readonly [number, number]> {
  const times: [number[], number[]] = [[], []];
  for (const { way } of sides) way.directory.putNetwork(NETWORK);
  for (const [index, path] of paths.entries()) {
    const kind = index % 2 === 0 ? 0 : 1;
    const { way, attached } = sides[kind];
    const startMs = performance.now();
    way.roster.put(factOf(index, path));
    await attached.until(Math.floor(index / 2) + 1);
    times[kind].push(performance.now() - startMs);
  }
  for (const { way, close } of sides) {
    await way.reconciler.stop();
    close();
  }
  return [median(times[0]), median(times[1])];
}

// Resident memory after garbage collection.
function settledRss(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss();
}

function row(what: string, measured: string, target: string, isReached: boolean): Row {
  return { what, measured, target, isReached };
}
