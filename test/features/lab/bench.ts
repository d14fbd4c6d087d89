// What the rules of a test cost the containers that they are for: processor time per query of the same queries to the same dns11,
// without rules, beside many rules on other names, and with a rule on the name; and how long it takes until a rule is in force.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";

import type { ControlClient } from "../../../src/api/control-client.ts";
import type { RuleRequest } from "../../../src/api/lease.ts";
import { dig } from "../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { startEngine } from "../../support/engine/engine.ts";
import { startDns11 } from "../../support/program/dns11.ts";
import { type DnsperfInput, atFullSpeed } from "../../bench/dnsperf.ts";
import type { FeaturePart } from "../../bench/feature-parts.ts";
import { type Row, median, quantile, readable, spreadOf } from "../../bench/figures.ts";
import type { Pace } from "../../bench/pace.ts";

const OTHERS = 1_000;
const IN_FORCE = 300;

const RULES: Readonly<Record<string, readonly RuleRequest[]>> = {
  "1,000 rules on other names": Array.from({ length: OTHERS }, (_, index) => ({
    name: `other-${index}.test`,
    action: "nxdomain",
  })),
  "1,000 rules on other domains": Array.from({ length: OTHERS }, (_, index) => ({
    name: `**.other-${index}.test`,
    action: "nxdomain",
  })),
  "a rule on the name that never applies": [{ name: "web", action: "nxdomain", types: ["A"], probability: 0 }],
  "an answer of the test's own": [{ name: "web", action: "answer", answer: "10.0.0.1" }],
};

export const parts: readonly FeaturePart[] = [
  ["lab", "Rules of tests: processor time per query, and time until a rule is in force", benchLab],
];

async function benchLab(pace: Pace): Promise<Row[]> {
  await using engine = await startEngine();
  await createNetwork(engine, "n1");
  const app = await runContainer(engine, { name: "app", networks: ["n1"] });
  await runContainer(engine, { name: "web", networks: ["n1"] });
  await using instance = await startDns11(engine, { settings: { keeper: "off" }, env: { DNS11_ANSWERS: "process" } });
  const client = instance.client;
  const file = join(engine.folder, "lab-queries");
  writeFileSync(file, "web A\n");
  const input: DnsperfInput = { file, rcode: "NOERROR" };
  const micros = async (seconds: number): Promise<number> =>
    (await atFullSpeed(app, input, instance.pid, seconds)).cpuMicros ?? Number.NaN;
  await micros(pace.warmSeconds + pace.startSeconds);
  const rows: Row[] = [];
  for (const [what, rules] of Object.entries(RULES)) {
    const ratios: number[] = [];
    const times: Record<"without" | "beside", number[]> = { without: [], beside: [] };
    for (let round = 0; round < pace.rounds; round++) {
      const cpu = { without: 0, beside: 0 };
      for (const which of ["without", "beside", "beside", "without"] as const) {
        const lease = await client.openLease();
        if (which === "beside") await Promise.all(rules.map(async (rule) => await lease.send({ rule })));
        cpu[which] += (await micros(pace.seconds / 2)) / 2;
        await lease.close();
      }
      ratios.push(cpu.beside / cpu.without);
      for (const which of ["without", "beside"] as const) times[which].push(cpu[which]);
    }
    const [without, beside] = [median(times.without), median(times.beside)].map((each) => each.toFixed(2));
    rows.push({ what, measured: `${readable(spreadOf(ratios), 2)} x: ${beside} us, ${without} us without rules` });
  }
  return [...rows, ...(await inForce(client, app))];
}

// From sending a rule to its acknowledgement; the next query must show it.
async function inForce(client: ControlClient, app: Container): Promise<Row[]> {
  const lease = await client.openLease();
  const took: number[] = [];
  for (let times = 0; times < IN_FORCE; times++) {
    const startMs = performance.now();
    const reply = await lease.send({ rule: { name: "web", action: "nxdomain" } });
    took.push(performance.now() - startMs);
    if (times % 50 === 0 && (await dig(app, "web")).status !== "NXDOMAIN") throw new Error("a rule is not in force");
    if ("id" in reply) await lease.send({ remove: reply.id });
  }
  await lease.close();
  const row = (share: number): Row => ({
    what: `a rule is sent until it is in force, p${share * 100}`,
    measured: `${quantile(took, share).toFixed(2)} ms`,
  });
  return [row(0.5), row(0.99)];
}
