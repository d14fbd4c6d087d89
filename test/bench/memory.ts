// Memory of a dns11 that is idle, with nothing attached and with 40 containers. V8 collects the garbage of a start only
// after some idle time, so each figure is the lowest of a minute. The keeper has its row in the bench of crashes.

import { readFileSync } from "node:fs";

import { createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { pause } from "../support/rig/wait.ts";
import type { Row } from "./figures.ts";

const NETWORK = "n1";
const CONTAINERS = 40;
const SECONDS = 60;
const MIB = 2 ** 20;

type Memory = { readonly resident: number; readonly anonymous: number };

export async function benchMemory(): Promise<Row[]> {
  await using engine = await startEngine();
  const rows = rowsOf("nothing", await lowestOf(engine), { resident: 65 * MIB, anonymous: 22 * MIB });
  await createNetwork(engine, NETWORK);
  for (let index = 0; index < CONTAINERS; index++) {
    await runContainer(engine, { name: `c${index}`, networks: [NETWORK] });
  }
  rows.push(...rowsOf(`${CONTAINERS} containers`, await lowestOf(engine), { resident: 72 * MIB }));
  return rows;
}

async function lowestOf(engine: Engine): Promise<Memory> {
  await using instance = await startDns11(engine);
  // The thread that attaches the kernel's programs ends some seconds later.
  await instance.waitForKernel();
  const { pid } = await instance.status();
  let lowest = memoryOf(pid);
  for (let second = 0; second < SECONDS; second++) {
    await pause(1_000);
    const now = memoryOf(pid);
    if (now.resident < lowest.resident) lowest = now;
  }
  return lowest;
}

function rowsOf(attached: string, memory: Memory, targets: Partial<Memory>): Row[] {
  return (["resident", "anonymous"] as const).map((kind) => {
    const row = {
      what: `${kind} memory, ${attached} attached`,
      measured: `${(memory[kind] / MIB).toFixed(1)} MiB`,
    };
    const target = targets[kind];
    return target === undefined ? row : { ...row, target: `<= ${target / MIB} MiB`, isReached: memory[kind] <= target };
  });
}

function memoryOf(pid: number): Memory {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const bytes = (field: string): number => Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(text)?.[1]) * 1024;
  return { resident: bytes("Rss"), anonymous: bytes("Anonymous") };
}
