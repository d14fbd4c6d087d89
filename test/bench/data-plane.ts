// Data plane benchmark: all servers in one container of one engine, queried in turn through the same address, round
// after round, so that disturbances of the machine affect all of them.

import { dig } from "../support/client/dig.ts";
import { startEngine } from "../support/engine/engine.ts";
import { startUnbound } from "../support/servers/real-server.ts";
import type { Bench } from "./bench.ts";
import { benchCrowd } from "./crowd.ts";
import { atFullSpeed, steadily } from "./dnsperf.ts";
import { benchFairness } from "./fairness.ts";
import { type Workload, ROWS, forwardedWorkloads, localWorkloads } from "./workloads.ts";
import { compile } from "./native.ts";
import type { Pace } from "./pace.ts";
import { Testbed } from "./testbed.ts";
import { Questions, UPSTREAM_LINES } from "./questions.ts";
import { DNS11, type Server } from "./server.ts";
import { Tally } from "./tally.ts";
import { benchTcp } from "./tcp.ts";
import { type Turn, takeRounds } from "./turns.ts";
import { warmUp } from "./warm-up.ts";

export const DATA_PLANE_PARTS = ["local", "forwarded", "tcp", "crowd", "fairness"] as const;
export type DataPlanePart = (typeof DATA_PLANE_PARTS)[number];

// Upstream server on the host, for servers that forward from there.
const UPSTREAM = "10.53.0.1";

export async function benchDataPlane(parts: readonly DataPlanePart[], pace: Pace): Promise<Tally> {
  return await withServers({ ours: [DNS11], pace, endMs: Infinity }, async (bench) => {
    const isWanted = (...some: DataPlanePart[]) => some.some((part) => parts.includes(part));
    if (isWanted("local", "forwarded", "tcp")) await benchTestbeds(bench, isWanted);
    if (isWanted("crowd")) await benchCrowd(bench);
    if (isWanted("fairness")) await benchFairness(bench);
  });
}

// With an engine, and an upstream server for all that forward.
export async function withServers(
  options: Pick<Bench, "ours" | "pace" | "endMs">,
  work: (bench: Bench) => Promise<void>,
): Promise<Tally> {
  await using engine = await startEngine({ resolvConf: `nameserver ${UPSTREAM}\n` });
  await using _upstream = await startUnbound(engine, { address: UPSTREAM, lines: UPSTREAM_LINES });
  const tally = new Tally();
  tally.engine = engine.version;
  await work({ ...options, engine, tally, questions: new Questions(engine.folder) });
  return tally;
}

async function benchTestbeds(bench: Bench, isWanted: (part: DataPlanePart) => boolean): Promise<void> {
  const { engine, questions } = bench;
  const floor = await compile("floor", engine.folder);
  await using few = await Testbed.make(engine, { network: "few", names: 10, floor });
  if (isWanted("local")) {
    await using many = await Testbed.make(engine, { network: "many", names: 10_000 });
    await benchWorkloads(bench, localWorkloads(questions, few, many), [few, many]);
  }
  if (isWanted("forwarded")) await benchWorkloads(bench, forwardedWorkloads(questions, few), [few]);
  if (isWanted("tcp")) await benchTcp(bench, few);
}

async function benchWorkloads(
  bench: Bench,
  workloads: readonly Workload[],
  testbeds: readonly Testbed[],
): Promise<void> {
  const what = workloads.map(({ row }) => row).join("; ");
  await takeRounds(bench, { what, testbeds }, async (turn, round) => await takeTurn(bench, workloads, turn, round));
}

export async function takeTurn(bench: Bench, workloads: readonly Workload[], turn: Turn, round: number): Promise<void> {
  if (turn.isFresh) await start(bench, workloads, turn);
  for (const workload of workloads) await measure(bench, workload, turn, round);
}

// dns11 has just been started and is compiled while it runs; the others have been running for long.
async function start(
  { pace: { startSeconds } }: Bench,
  [first]: readonly Workload[],
  { server, pidAt }: Turn,
): Promise<void> {
  const pid = pidAt(first?.testbed);
  if (first === undefined || pid === undefined) return;
  await atFullSpeed(first.testbed.client, first.input(server, startSeconds), pid, startSeconds);
}

async function measure(
  { tally, pace }: Bench,
  workload: Workload,
  { server, isFresh, pidAt }: Turn,
  round: number,
): Promise<void> {
  const { row, testbed, servers, input } = workload;
  const pid = pidAt(testbed);
  if (pid === undefined || !servers.includes(server)) return;
  const { seconds, steadySeconds } = pace;
  const { client } = testbed;
  if (round === 0) await check(workload, server);
  const load = async (): Promise<number> =>
    (await atFullSpeed(client, input(server, pace.warmSeconds), pid, pace.warmSeconds)).perSecond ?? 0;
  if (round === 0 || isFresh) await warmUp(load);
  const full = await atFullSpeed(client, input(server, seconds), pid, seconds);
  const steady = await steadily(client, input(server, steadySeconds), steadySeconds);
  tally.add({ row, server }, { ...steady, ...full, lost: full.lost + steady.lost });
  if (server !== "floor") return;
  const two = await atFullSpeed(client, { ...input(server, seconds), threads: 2 }, pid, seconds);
  tally.add({ row: ROWS.twoThreads, server }, two);
}

async function check({ row, testbed, question, isRight }: Workload, server: Server): Promise<void> {
  const reply = await dig(testbed.client, ...question);
  if (!isRight(reply, server)) throw new Error(`${row}: unexpected reply of ${server}:\n${reply.raw}`);
}
