// Queries a second and CPU a query: dockerd's own resolver and dns11, asked for the same name in the same container
// through the same address, in turn. The rules lead to Docker while no dns11 runs, and to dns11 while one does.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { stdoutOf } from "../support/command.ts";
import { type Container, createNetwork, runContainer } from "../support/container.ts";
import { type Dns11, startDns11 } from "../support/dns11.ts";
import { startEngine } from "../support/engine.ts";
import { startUpstream } from "../support/upstream.ts";
import { type Row, median, spread } from "./figures.ts";

const ROUNDS = 5;
const SECONDS = 3;
const FORWARD_SECONDS = 2;
const CLOCK_TICKS = 100;

type Sample = { readonly perSecond: number; readonly cpuMicros: number; readonly lost: number };
type Samples = { readonly dockerd: Sample[]; readonly dns11: Sample[] };

export async function benchQueries(): Promise<Row[]> {
  await using engine = await startEngine({ suite: "forky" });
  await using _upstream = await startUpstream(engine);
  await createNetwork(engine, "n1");
  await runContainer(engine, { name: "web", networks: ["n1"] });
  const client = await runContainer(engine, { name: "client", networks: ["n1"] });
  const questions = { local: join(engine.folder, "local"), forwarded: join(engine.folder, "forwarded") };
  // dnsperf reads its questions again and again, so it wants a file.
  writeFileSync(questions.local, "web A\n");
  writeFileSync(questions.forwarded, "a.ok.test A\n");
  const samples: Record<keyof typeof questions, Samples> = {
    local: { dockerd: [], dns11: [] },
    forwarded: { dockerd: [], dns11: [] },
  };
  for (let round = 0; round < ROUNDS; round++) {
    for (const kind of ["local", "forwarded"] as const) {
      const seconds = kind === "local" ? SECONDS : FORWARD_SECONDS;
      samples[kind].dockerd.push(await measure(client, questions[kind], engine.pid, seconds));
      await using instance: Dns11 = await startDns11(engine);
      samples[kind].dns11.push(await measure(client, questions[kind], instance.pid, seconds));
      await instance.stop();
    }
  }
  return [...rowsOf("container name, UDP", samples.local, 2, 0.4), ...rowsOf("forwarded, UDP", samples.forwarded)];
}

// dnsperf's own words, and what the kernel says the server used meanwhile.
async function measure(client: Container, questionFile: string, pid: number, seconds: number): Promise<Sample> {
  const before = cpuSeconds(pid);
  const args = ["-s", "127.0.0.11", "-d", questionFile, "-l", String(seconds), "-c", "8", "-q", "100", "-T", "1"];
  const { code, stdout, stderr } = await client.enter("dnsperf", args);
  const text = stdoutOf({ code, stdout, stderr }, "dnsperf");
  const used = cpuSeconds(pid) - before;
  const completed = Number(/Queries completed:\s+(\d+)/.exec(text)?.[1] ?? 0);
  const lost = Number(/Queries lost:\s+(\d+)/.exec(text)?.[1] ?? 0);
  const perSecond = Number(/Queries per second:\s+([\d.]+)/.exec(text)?.[1] ?? 0);
  if (completed === 0) throw new Error(`dnsperf got no answer:\n${text}`);
  return { perSecond, cpuMicros: (used / completed) * 1e6, lost };
}

// Of the whole process: user and system time, in the kernel's accounting.
function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS;
}

function rowsOf(what: string, { dockerd, dns11 }: Samples, rateMin?: number, cpuMax?: number): Row[] {
  const rate = median(dns11.map((sample, i) => sample.perSecond / (dockerd[i]?.perSecond ?? 1)));
  const cpu = median(dns11.map((sample, i) => sample.cpuMicros / (dockerd[i]?.cpuMicros ?? 1)));
  const side = (name: string, samples: readonly Sample[]): Row => ({
    what: `${what}: ${name}`,
    measured: `${spread(
      samples.map(({ perSecond }) => perSecond),
      0,
    )} queries/s, ${spread(samples.map(({ cpuMicros }) => cpuMicros))} CPU us a query, ${samples.reduce((sum, { lost }) => sum + lost, 0)} lost`,
  });
  return [
    side("dockerd", dockerd),
    side("dns11", dns11),
    {
      what: `${what}: queries/s, dns11 : dockerd`,
      measured: rate.toFixed(2),
      ...(rateMin !== undefined && { target: `>= ${rateMin}`, isReached: rate >= rateMin }),
    },
    {
      what: `${what}: CPU a query, dns11 : dockerd`,
      measured: cpu.toFixed(2),
      ...(cpuMax !== undefined && { target: `<= ${cpuMax}`, isReached: cpu <= cpuMax }),
    },
  ];
}
