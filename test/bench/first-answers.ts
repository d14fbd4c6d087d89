// The first answer to a name after a change of names: the process gives it, and leaves it in the kernel. 10,000 names, each asked once after
// each change, beside a dns11 that answers everything itself. Each runs beside an engine of its own, and both are asked in turn.

import { type Container, createNetwork, runContainer } from "../support/engine/container.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { atFullSpeed, once } from "./dnsperf.ts";
import { type Row, readable, spreadOf } from "./figures.ts";
import type { Pace } from "./pace.ts";
import { Questions } from "./questions.ts";
import { startHosts } from "./testbed.ts";

const NETWORK = "names";
const OTHER = "other";
const NAMES = 10_000;
// So that the code is compiled.
const WARM_PASSES = 5;
const SETTLE_MS = 300;
// The kernel counts processor time in steps of 10 ms.
const PASSES = 5;
const RATIO_MAX = 3;

type Answers = "kernel" | "process";
// Whoever asks one dns11.
type Asker = { readonly client: Container; readonly file: string; readonly pid: number };

export async function benchFirstAnswers(pace: Pace): Promise<Row[]> {
  await using kernelEngine = await startEngine();
  await using processEngine = await startEngine();
  await using byKernel = await startBeside(kernelEngine, "kernel");
  await using byProcess = await startBeside(processEngine, "process");
  const kernel = await askerOf(kernelEngine, byKernel);
  const process = await askerOf(processEngine, byProcess);
  for (const asker of [kernel, process]) {
    await atFullSpeed(asker.client, { file: asker.file, rcode: "NOERROR" }, asker.pid, pace.startSeconds);
    for (let pass = 0; pass < WARM_PASSES; pass++) await askAfterChange(asker);
  }
  const [micros, ratios]: [Record<Answers, number[]>, number[]] = [{ kernel: [], process: [] }, []];
  for (let round = 0; round < pace.rounds; round++) {
    console.error(`bench: first answers, round ${round + 1} of ${pace.rounds}`);
    const sums: Record<Answers, number> = { kernel: 0, process: 0 };
    for (let pass = 0; pass < PASSES; pass++) {
      sums.kernel += await askAfterChange(kernel);
      sums.process += await askAfterChange(process);
    }
    micros.kernel.push(sums.kernel / PASSES);
    micros.process.push(sums.process / PASSES);
    ratios.push(sums.kernel / sums.process);
  }
  const spread = spreadOf(ratios);
  return [
    { what: "left in the kernel", measured: `${readable(spreadOf(micros.kernel), 1)} us` },
    { what: "by a process that leaves nothing there", measured: `${readable(spreadOf(micros.process), 1)} us` },
    {
      what: "processor time of the first one to the second one",
      measured: `${readable(spread, 2)} x`,
      target: `<= ${RATIO_MAX} x`,
      isReached: spread.median <= RATIO_MAX,
    },
  ];
}

async function startBeside(engine: Engine, answers: Answers): Promise<Dns11> {
  return await startDns11(engine, { settings: { keeper: "off" }, env: { DNS11_ANSWERS: answers } });
}

async function askerOf(engine: Engine, instance: Dns11): Promise<Asker> {
  const hosts = await startHosts(engine, { network: NETWORK, names: NAMES });
  await createNetwork(engine, OTHER);
  const client = await runContainer(engine, { name: "client", networks: [NETWORK] });
  await instance.waitForKernel();
  return { client, file: new Questions(engine.folder).addresses(hosts), pid: instance.pid };
}

// Microseconds of the process for a query.
async function askAfterChange({ client, file, pid }: Asker): Promise<number> {
  const { Networks } = (await client.inspect()).NetworkSettings;
  await (OTHER in Networks ? client.disconnect(OTHER) : client.connect(OTHER));
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const { cpuMicros = Number.NaN } = await once(client, { file, rcode: "NOERROR" }, pid);
  return cpuMicros;
}
