// Crash benchmark: queries lost when the serving process is killed, with and without a keeper, in the namespace whose rules are
// removed last: the keeper begins with those that were attached first, and the kernel ends with them; and queries lost when one process replaces another. The
// client uses a new socket for each query and does not wait for replies. A server behind dns11 answers in place of
// Docker's resolver.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { type QueryEnd, queryLoop } from "../support/client/query-loop.ts";
import { createNetwork, runContainer } from "../support/engine/container.ts";
import { startEngine } from "../support/engine/engine.ts";
import { run } from "../support/program/command.ts";
import { Dns11, startDns11 } from "../support/program/dns11.ts";
import { MainWithKeeper, isAlive } from "../support/program/main-with-keeper.ts";
import { type NetworkContext, inNetns } from "../support/rig/netns.ts";
import { waitFor } from "../support/rig/wait.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import type { Row } from "./figures.ts";
import { makeNetnses, removeNetnses } from "./namespaces.ts";

const PER_SECOND = 2_000;
const SIZES = [40, 1_000];
// Design target for the time until Docker's resolver answers.
const WITHIN_MS = 150;
const CONTAINERS = 40;

export async function benchCrash(): Promise<Row[]> {
  const rows: Row[] = [];
  for (const size of SIZES) {
    const paths = makeNetnses(size);
    try {
      for (const hasKeeper of [false, true]) rows.push(...(await benchKill(paths, hasKeeper)));
    } finally {
      removeNetnses(paths);
    }
  }
  return [...rows, await benchReplace()];
}

async function benchKill(paths: readonly string[], hasKeeper: boolean): Promise<Row[]> {
  const unluckiest = paths.at(hasKeeper ? -1 : 0) ?? "";
  const folder = mkdtempSync(join(tmpdir(), "d11-crash-"));
  const dockerResolver = await startUpstream({ netnsPath: unluckiest }, { address: "127.0.0.11" });
  const main = await MainWithKeeper.start({ folder, hasKeeper, paths });
  try {
    const keeper = hasKeeper ? await main.keeperWith(paths.length) : undefined;
    const memory = keeper === undefined ? 0 : privateBytes(keeper);
    // Without a keeper the kernel takes about 14 ms per table.
    const forMs = 4_000 + (hasKeeper ? 0 : paths.length * 20);
    const loop = queryLoop(contextAt(unluckiest), { name: "a.ok.test", perSecond: PER_SECOND, forMs });
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const endMs = Date.now();
    main.kill("SIGKILL");
    const { lost, outageMs } = lossOf(await loop, endMs);
    if (keeper !== undefined) await waitFor("the keeper to end", () => (isAlive(keeper) ? undefined : true));
    const variant = hasKeeper ? "with a keeper" : "without a keeper";
    const loss: Row = {
      what: `SIGKILL, unluckiest of ${paths.length} namespaces, ${PER_SECOND} queries/s, ${variant}`,
      measured: `${lost} lost, the last one after ${outageMs} ms`,
      ...(hasKeeper && { target: `<= ${WITHIN_MS} ms`, isReached: outageMs <= WITHIN_MS }),
    };
    const size: Row = {
      what: `private memory of the keeper, ${paths.length} namespaces`,
      measured: `${(memory / 1e6).toFixed(1)} MB`,
      target: "<= 10 MB",
      isReached: memory <= 10e6,
    };
    return hasKeeper ? [loss, size] : [loss];
  } finally {
    await main[Symbol.asyncDispose]();
    await dockerResolver[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  }
}

// On a real engine, including the whole takeover between the processes.
async function benchReplace(): Promise<Row> {
  await using engine = await startEngine({ suite: "bookworm" });
  await createNetwork(engine, "n1");
  const client = await runContainer(engine, { name: "client", networks: ["n1"] });
  for (let index = 1; index < CONTAINERS; index++) {
    await runContainer(engine, { name: `c${index}`, networks: ["n1"] });
  }
  await using before = await startDns11(engine);
  await before.waitForKernel();
  const loop = queryLoop(client, { name: "c1", perSecond: PER_SECOND, forMs: 8_000 });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  await using after = new Dns11(engine.host, { stateDir: before.stateDir, args: ["--replace"] });
  await before.ended();
  const ends = await loop;
  const status = await after.status();
  if (status.pid !== after.pid) throw new Error(`no takeover: ${after.log}`);
  const tookMs = /"ms":(\d+),"msg":"took over/.exec(after.log)?.[1] ?? "?";
  const lost = ends.filter(({ outcome }) => outcome !== "NOERROR").length;
  return {
    what: `replacement with --replace, ${CONTAINERS} containers of an engine, ${PER_SECOND} queries/s`,
    measured: `${lost} of ${ends.length} lost, takeover in ${tookMs} ms`,
    target: "0 lost",
    isReached: lost === 0,
  };
}

function lossOf(ends: readonly QueryEnd[], endMs: number): { lost: number; outageMs: number } {
  const after = ends.filter(({ atMs, outcome }) => outcome !== "NOERROR" && atMs >= endMs - 10);
  return { lost: after.length, outageMs: Math.max(0, ...after.map(({ atMs }) => atMs - endMs)) };
}

function contextAt(path: string): NetworkContext {
  return {
    enter: async (command, args = [], options = {}) => {
      const [first = "", ...rest] = inNetns(path, command, args);
      return await run(first, rest, { timeoutMs: 120_000, ...options });
    },
  };
}

// Anonymous memory, which is not shared.
function privateBytes(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(/^Anonymous:\s+(\d+)/m.exec(text)?.[1]) * 1024;
}
