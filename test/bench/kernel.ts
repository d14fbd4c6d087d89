// Container names answered by the kernel, beside the same names answered by the process and by the floor, in one container.
// The last row has the process stopped: whatever is answered then is answered by the kernel alone. HINFO is answered
// by the process in any case, but with --answers kernel its packets are not tracked.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { check } from "../support/program/command.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { atFullSpeed, steadily } from "./dnsperf.ts";
import { type Row, type Spread, median, readable, spreadOf } from "./figures.ts";
import { compile } from "./native.ts";
import { type LoadResult, parseLoadResult } from "./load-program.ts";
import { reverseName } from "./questions.ts";
import { redirectTo } from "./redirect.ts";
import type { Sample } from "./tally.ts";
import { Testbed } from "./testbed.ts";

const ROUNDS = 3;
const SECONDS = 1;
const WARM_SECONDS = 0.5;
// A process that has just been started is compiled while it runs.
const START_SECONDS = 4;
const NAMES = 10;
const SPEED_MIN = 2;
const LATENCY_MAX = 1 / 3;

const QUESTIONS = { a: "A", aaaa: "AAAA: no data", ptr: "PTR", hinfo: "HINFO, by the process" } as const;
type Question = keyof typeof QUESTIONS;
const STOPPED = "kernel, process stopped";
const SERVERS = ["floor", "process", "kernel", STOPPED] as const;
type Answerer = (typeof SERVERS)[number];

// With the median of one query after the other, by a client that finds the reply of the kernel already there.
type KernelSample = Sample & { readonly aloneMs?: number };
type Column = "perSecond" | "cpuMicros" | "p50Ms" | "p99Ms" | "aloneMs";

export async function benchKernel(): Promise<Row[]> {
  await using engine = await startEngine({ suite: "forky" });
  const load = await compile("crowd", engine.folder);
  const floor = await compile("floor", engine.folder);
  await using testbed = await Testbed.make(engine, { network: "few", names: NAMES, floor });
  const files = questionFiles(engine, testbed);
  const samples = new Map<string, KernelSample[]>();
  const add = async (answerer: Answerer, question: Question, pid: number): Promise<void> => {
    const key = keyOf(answerer, question);
    const isStopped = answerer === STOPPED;
    const isFirst = question === "hinfo" || (question === "a" && answerer === "process");
    const warm = isStopped ? 0 : isFirst ? START_SECONDS : WARM_SECONDS;
    const sample = await measure(testbed, files[question], pid, warm);
    const aloneMs = question === "a" && !isStopped && load !== undefined ? await alone(testbed, load) : undefined;
    samples.set(key, [...(samples.get(key) ?? []), { ...sample, ...(aloneMs !== undefined && { aloneMs }) }]);
  };
  for (let round = 0; round < ROUNDS; round++) {
    console.error(`bench: kernel, round ${round + 1} of ${ROUNDS}`);
    const rival = testbed.rivals.all.find(({ server }) => server === "floor");
    await redirectTo(testbed.client, rival?.port);
    await add("floor", "a", rival?.pid ?? 0);
    await redirectTo(testbed.client, undefined);
    for (const answers of ["process", "kernel"] as const) {
      await using instance = await startDns11(engine, { args: ["--answers", answers, "--keeper", "off"] });
      for (const question of ["a", "aaaa", "ptr", "hinfo"] as const) await add(answers, question, instance.pid);
      if (answers === "process") continue;
      instance.kill("SIGSTOP");
      await add(STOPPED, "a", instance.pid);
      instance.kill("SIGCONT");
    }
  }
  return [...rowsOf(samples), ...targetsOf(samples)];
}

function questionFiles(engine: Engine, { hosts }: Testbed): Record<Question, string> {
  const file = (name: string, lines: readonly string[]): string => {
    const path = join(engine.folder, name);
    writeFileSync(path, `${lines.join("\n")}\n`);
    return path;
  };
  return {
    a: file(
      "a",
      hosts.map(({ name }) => `${name} A`),
    ),
    aaaa: file(
      "aaaa",
      hosts.map(({ name }) => `${name} AAAA`),
    ),
    ptr: file(
      "ptr",
      hosts.map(({ address }) => `${reverseName(address)} PTR`),
    ),
    hinfo: file(
      "hinfo",
      hosts.map(({ name }) => `${name} HINFO`),
    ),
  };
}

async function measure({ client }: Testbed, file: string, pid: number, warm: number): Promise<Sample> {
  const input = { file, rcode: "NOERROR" } as const;
  // Briefly: a process that hangs ends, and with a keeper at once.
  if (warm === 0) return await atFullSpeed(client, input, pid, SECONDS);
  await atFullSpeed(client, input, pid, warm);
  const full = await atFullSpeed(client, input, pid, SECONDS);
  const steady = await steadily(client, input, SECONDS);
  return { ...steady, ...full, lost: full.lost + steady.lost };
}

async function alone({ client, hosts: [host] }: Testbed, load: string): Promise<number> {
  const args = ["0", String(SECONDS * 1_000), "1", host?.name ?? ""];
  const result: LoadResult = parseLoadResult(await check(load, args, { input: `${client.netnsPath}\n` }));
  return result.p50Ms;
}

function rowsOf(samples: ReadonlyMap<string, readonly KernelSample[]>): Row[] {
  return SERVERS.flatMap((answerer) =>
    (Object.keys(QUESTIONS) as Question[]).flatMap((question): Row[] => {
      const of = samples.get(keyOf(answerer, question));
      if (of === undefined) return [];
      const spread = (column: Column, factor: number, digits: number): string =>
        readable(spreadOf(of.map((sample) => (sample[column] ?? Number.NaN) * factor)), digits);
      const lost = of.reduce((sum, sample) => sum + sample.lost, 0);
      const speed = `${spread("perSecond", 0.001, 0)}k queries/s; ${spread("cpuMicros", 1, 2)} us of the process`;
      const latency = `at 2,000/s p50 ${spread("p50Ms", 1_000, 0)} us, p99 ${spread("p99Ms", 1_000, 0)} us`;
      const times = [
        ...(answerer === STOPPED ? [] : [latency]),
        ...(question === "a" && answerer !== STOPPED ? [`one at a time p50 ${spread("aloneMs", 1_000, 0)} us`] : []),
      ];
      const measured = [speed, ...times, `lost ${lost}`].join("; ");
      return [{ what: keyOf(answerer, question), measured, columns: columnsOf(of) }];
    }),
  );
}

function columnsOf(samples: readonly KernelSample[]): Record<string, Spread> {
  const columns = (["perSecond", "cpuMicros", "aloneMs"] as const).flatMap((column) => {
    const values = samples.flatMap((sample) => sample[column] ?? []);
    return values.length === 0 ? [] : [[column, spreadOf(values)] as const];
  });
  return Object.fromEntries(columns);
}

function targetsOf(samples: ReadonlyMap<string, readonly KernelSample[]>): Row[] {
  const of = (answerer: Answerer, column: Column): number =>
    median((samples.get(keyOf(answerer, "a")) ?? []).map((sample) => sample[column] ?? Number.NaN));
  const speed = of("kernel", "perSecond") / of("floor", "perSecond");
  const latency = of("kernel", "aloneMs") / of("floor", "aloneMs");
  return [
    {
      what: "queries/s of the kernel against the floor",
      measured: `${speed.toFixed(2)} x`,
      target: `>= ${SPEED_MIN} x`,
      isReached: speed >= SPEED_MIN,
    },
    {
      what: "one at a time, p50 of the kernel against the floor",
      measured: `${latency.toFixed(2)} x`,
      target: `<= ${LATENCY_MAX.toFixed(2)} x`,
      isReached: latency <= LATENCY_MAX,
    },
  ];
}

function keyOf(answerer: Answerer, question: Question): string {
  return `${answerer}: ${QUESTIONS[question]}`;
}
