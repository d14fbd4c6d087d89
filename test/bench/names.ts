// What 10,000 declared names and 1,000 wildcards cost every kind of local name: the same queries to a dns11 with a few of
// them and to one with all of them. Both run all the time, each beside an engine of its own, and are asked in turn: a
// process that was just started is slower than either of them by more than the difference.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type Dns11, WITHOUT_KEEPER, startDns11 } from "../support/program/dns11.ts";
import { type DnsperfInput, atFullSpeed } from "./dnsperf.ts";
import { type Row, median, readable, spreadOf } from "./figures.ts";
import type { Pace } from "./pace.ts";
import { reverseName } from "./questions.ts";

const ZONE = "cluster.local";
const CONTAINERS = 10;
const COUNTS = { few: { names: 10, wildcards: 10 }, many: { names: 10_000, wildcards: 1_000 } } as const;
type Load = keyof typeof COUNTS;
const CPU_MAX = 1.05;
// In each round, of each kind of name.
const BLOCKS = 3;

type Member = { readonly name: string; readonly address: string };

// Processor time per query of both.
type Block = Readonly<Record<Load, number>>;

// The container that asks a dns11, with its queries.
type Asker = { readonly client: Container; readonly inputs: ReadonlyMap<string, DnsperfInput>; readonly pid: number };

export async function benchNames(pace: Pace): Promise<Row[]> {
  await using fewEngine = await startNames();
  await using manyEngine = await startNames();
  await using fewInstance = await startBeside(fewEngine, "few");
  await using manyInstance = await startBeside(manyEngine, "many");
  const few = await askerOf(fewEngine, fewInstance);
  const many = await askerOf(manyEngine, manyInstance);
  const kinds = [...few.inputs.keys()];
  for (const what of kinds) for (const asker of [few, many]) await warm(asker, what, pace);
  const blocks = new Map<string, Block[]>(kinds.map((what) => [what, []]));
  for (let round = 0; round < pace.rounds; round++) {
    console.error(`bench: names, round ${round + 1} of ${pace.rounds}`);
    for (const [what, found] of blocks) {
      for (let block = 0; block < BLOCKS; block++) found.push(await measureBlock(few, many, what, pace));
    }
  }
  return [...blocks].map(([what, found]) => rowOf(what, found));
}

async function startNames(): Promise<Engine> {
  const engine = await startEngine();
  await createNetwork(engine, "names");
  return engine;
}

async function startBeside(engine: Engine, load: Load): Promise<Dns11> {
  const env = { ...WITHOUT_KEEPER, DNS11_ANSWERS: "process" };
  return await startDns11(engine, { args: ["--config", settingsFile(engine, load)], env });
}

async function askerOf(engine: Engine, { pid }: Dns11): Promise<Asker> {
  const members: Member[] = [];
  for (let index = 0; index < CONTAINERS; index++) members.push(await runMember(engine, index));
  const client = await runContainer(engine, { name: "client", networks: ["names"] });
  return { client, inputs: inputsOf(engine, members), pid };
}

async function runMember(engine: Engine, index: number): Promise<Member> {
  const name = `web-${index}`;
  const labels = {
    "com.docker.compose.project": "shop",
    "com.docker.compose.service": name,
    "com.docker.compose.container-number": "1",
  };
  const container = await runContainer(engine, { name, labels, networks: ["names"] });
  return { name, address: container.address("names") };
}

// The kinds of local names, each with its queries.
function inputsOf({ folder }: Engine, members: readonly Member[]): Map<string, DnsperfInput> {
  const input = (file: string, lines: readonly string[]): DnsperfInput => {
    const path = join(folder, `names-${file}`);
    writeFileSync(path, `${lines.join("\n")}\n`);
    return { file: path, rcode: "NOERROR" };
  };
  const numbers = members.map((_, index) => index);
  return new Map([
    [
      "container name, A",
      input(
        "a",
        members.map(({ name }) => `${name} A`),
      ),
    ],
    [
      "declared name, A",
      input(
        "declared",
        numbers.map((number) => `${declaredName(number)} A`),
      ),
    ],
    [
      "wildcard, A",
      input(
        "wildcard",
        numbers.map((number) => `any.${wildcardDomain(number)} A`),
      ),
    ],
    [
      "zone name, A",
      input(
        "zone",
        members.map(({ name }) => `${name}.shop.svc.${ZONE} A`),
      ),
    ],
    [
      "container address, PTR",
      input(
        "ptr",
        members.map(({ address }) => `${reverseName(address)} PTR`),
      ),
    ],
  ]);
}

function settingsFile({ folder }: Engine, load: Load): string {
  const { names, wildcards } = COUNTS[load];
  const lines = [
    ...Array.from({ length: names }, (_, number) => `  ${declaredName(number)}: 10.9.${number >> 8}.${number & 255}`),
    ...Array.from({ length: wildcards }, (_, number) => `  "*.${wildcardDomain(number)}": 10.8.0.${number & 255}`),
  ];
  const path = join(folder, `names-${load}.yaml`);
  writeFileSync(path, `version: 1\nzone: ${ZONE}\nrecords:\n${lines.join("\n")}\n`);
  return path;
}

function declaredName(number: number): string {
  return `name-${number}.declared.test`;
}

function wildcardDomain(number: number): string {
  return `apps-${number}.wild.test`;
}

async function warm(asker: Asker, what: string, pace: Pace): Promise<void> {
  await measure(asker, what, pace.warmSeconds + pace.startSeconds);
}

// The machine's speed changes within seconds, so both are measured twice within two, and only their ratio counts.
async function measureBlock(few: Asker, many: Asker, what: string, { seconds }: Pace): Promise<Block> {
  const cpu = { few: 0, many: 0 };
  for (const [load, asker] of [
    ["few", few],
    ["many", many],
    ["many", many],
    ["few", few],
  ] as const) {
    cpu[load] += (await measure(asker, what, seconds / 2)) / 2;
  }
  return cpu;
}

// Processor time per query in microseconds.
async function measure({ client, inputs, pid }: Asker, what: string, seconds: number): Promise<number> {
  const input = inputs.get(what);
  if (input === undefined) throw new Error(`no queries for ${what}`);
  const { cpuMicros = Number.NaN } = await atFullSpeed(client, input, pid, seconds);
  return cpuMicros;
}

function rowOf(what: string, blocks: readonly Block[]): Row {
  const ratio = spreadOf(blocks.map(({ few, many }) => many / few));
  const [many, few] = (["many", "few"] as const).map((load) => median(blocks.map((block) => block[load])).toFixed(2));
  return {
    what,
    measured: `${readable(ratio, 2)} x: ${many} us with all, ${few} us with ${COUNTS.few.names} of each`,
    target: `<= ${CPU_MAX.toFixed(2)} x`,
    isReached: ratio.median <= CPU_MAX,
  };
}
