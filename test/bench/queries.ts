// Queries a second and CPU a query: dockerd's own resolver and dns11, asked for the same name in the same container
// through the same address, in turn. The rules lead to Docker while no dns11 runs, and to dns11 while one does.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { createNetwork, runContainer } from "../support/container.ts";
import { startDns11 } from "../support/dns11.ts";
import { startEngine } from "../support/engine.ts";
import { type Sample, measure, ratioRow, sideRow } from "./dnsperf.ts";
import type { Row } from "./figures.ts";

const ROUNDS = 5;
const SECONDS = 3;
const WHAT = "container name, UDP";

export async function benchQueries(): Promise<Row[]> {
  await using engine = await startEngine({ suite: "forky" });
  await createNetwork(engine, "n1");
  await runContainer(engine, { name: "web", networks: ["n1"] });
  const client = await runContainer(engine, { name: "client", networks: ["n1"] });
  const questions = join(engine.folder, "questions");
  writeFileSync(questions, "web A\n");
  const [dockerd, dns11]: [Sample[], Sample[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    dockerd.push(await measure(client, questions, engine.pid, SECONDS));
    await using instance = await startDns11(engine);
    dns11.push(await measure(client, questions, instance.pid, SECONDS));
    await instance.stop();
  }
  return [
    sideRow(`${WHAT}: dockerd`, dockerd),
    sideRow(`${WHAT}: dns11`, dns11),
    ratioRow(`${WHAT}: queries/s, dns11 : dockerd`, "perSecond", [dns11, dockerd], { least: 2 }),
    ratioRow(`${WHAT}: CPU a query, dns11 : dockerd`, "cpuMicros", [dns11, dockerd], { most: 0.4 }),
  ];
}
