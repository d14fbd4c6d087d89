// The names of a swarm service, by dockerd and by dns11, which asks dockerd for each once a second. In one container, one
// after the other.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { createOverlay, createService, initSwarm } from "../../support/engine/swarm.ts";
import { startDns11 } from "../../support/program/dns11.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { atFullSpeed, steadily } from "../../bench/dnsperf.ts";
import type { FeaturePart } from "../../bench/feature-parts.ts";
import { type Row, readable, spreadOf } from "../../bench/figures.ts";
import type { Sample } from "../../bench/tally.ts";

const ROUNDS = 3;
const SECONDS = 1;
const STEADY_PER_SECOND = 500;

export const parts: readonly FeaturePart[] = [["swarm", "Names of a swarm service", benchSwarm]];

async function benchSwarm(): Promise<Row[]> {
  await using engine = await startEngine();
  await initSwarm(engine);
  await createOverlay(engine, "mesh");
  await createService(engine, "web", { networks: ["mesh"] });
  const client = await runContainer(engine, { name: "client", networks: ["mesh"] });
  const isKnown = async (name: string): Promise<boolean> => dataOf(await dig(client, name)).length === 1;
  await waitFor("the service", async () => ((await isKnown("web")) && (await isKnown("tasks.web")) ? true : undefined));
  const input = { file: questions(engine), rcode: "NOERROR" } as const;
  const samples: Record<"dockerd" | "dns11", Sample[]> = { dockerd: [], dns11: [] };
  const measure = async (pid: number): Promise<Sample> => {
    const full = await atFullSpeed(client, input, pid, SECONDS);
    return { ...(await steadily(client, input, SECONDS, STEADY_PER_SECOND)), ...full };
  };
  for (let round = 0; round < ROUNDS; round++) {
    console.error(`bench: swarm, round ${round + 1} of ${ROUNDS}`);
    samples.dockerd.push(await measure(engine.pid));
    await using instance = await startDns11(engine, { settings: { keeper: "off" } });
    samples.dns11.push(await measure(instance.pid));
  }
  return Object.entries(samples).map(([server, all]) => {
    const of = (key: keyof Sample, digits: number): string =>
      readable(spreadOf(all.map((sample) => Number(sample[key]))), digits);
    const figures = [
      `${of("perSecond", 0)} queries/s`,
      `${of("cpuMicros", 1)} us of CPU`,
      `p50 ${of("p50Ms", 2)} ms at ${STEADY_PER_SECOND}/s`,
    ];
    return { what: `service name, A, by ${server}`, measured: figures.join(", ") };
  });
}

function questions(engine: Engine): string {
  const path = join(engine.folder, "swarm-questions");
  writeFileSync(path, "web A\ntasks.web A\n");
  return path;
}
