// A hundred containers that query in turn: a hundred network namespaces with one resolver process, which only dockerd
// and dns11 support. It uses the bench's own C program, because dnsperf runs in one namespace.

import { check } from "../support/program/command.ts";
import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import type { Engine } from "../support/engine/engine.ts";
import type { Bench } from "./bench.ts";
import { type RunLoad, sampleOf } from "./load-program.ts";
import { STEADILY_PER_SECOND } from "./dnsperf.ts";
import { compile } from "./native.ts";
import { takeRounds } from "./turns.ts";

const ROW = "container name, A, 100 containers in turn";
const CONTAINERS = 100;
const STARTED_AT_ONCE = 4;
const NETWORK = "crowd";
const NAME = "crowd0";
// At full speed as many queries are in flight as with dnsperf; a steady client does not wait for its last reply.
const WINDOWS = { "at full speed": 1, steadily: 16 };

export async function benchCrowd(bench: Bench): Promise<void> {
  const { engine, tally, pace } = bench;
  const program = await compile("crowd", engine.folder);
  if (program === undefined) return;
  const input = (await startContainers(engine, CONTAINERS)).map(({ netnsPath }) => `${netnsPath}\n`).join("");
  const runLoad: RunLoad = async (how, seconds) => {
    const perSecond = how === "steadily" ? STEADILY_PER_SECOND : 0;
    const args = [perSecond, seconds * 1_000, WINDOWS[how]].map(String);
    return await check(program, [...args, NAME], { input });
  };
  await takeRounds(bench, { what: ROW }, async (turn) => {
    const { server, pidAt } = turn;
    tally.add({ row: ROW, server }, await sampleOf(runLoad, turn, pidAt(undefined) ?? 0, pace));
  });
}

export async function startContainers(engine: Engine, count: number): Promise<Container[]> {
  await createNetwork(engine, NETWORK);
  const containers: Container[] = [];
  let next = 0;
  const startOn = async (): Promise<void> => {
    while (next < count) {
      const name = `crowd${next++}`;
      containers.push(await runContainer(engine, { name, networks: [NETWORK] }));
    }
  };
  await Promise.all(Array.from({ length: STARTED_AT_ONCE }, startOn));
  return containers;
}
