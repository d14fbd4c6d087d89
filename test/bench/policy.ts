// What policies cost: processor time per query of the same queries to the same dns11, of a container without a policy beside others
// that have one, and of a container with one; a name of a container and a cached one; and how long it takes until a reload is in force.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";

import { dig } from "../support/client/dig.ts";
import { createNetwork, runContainer } from "../support/engine/container.ts";
import { startEngine } from "../support/engine/engine.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import { type DnsperfInput, atFullSpeed } from "./dnsperf.ts";
import { type Row, median, quantile, readable, spreadOf } from "./figures.ts";
import type { Pace } from "./pace.ts";

const RULES = 1_000;
const RELOADS = 40;
const HEAD = "version: 1\nanswers: process\nkeeper: off\n";
const QUERIES = ["web", "one.ok.test"];

const listed = `[${["one.ok.test", ...Array.from({ length: RULES }, (_, index) => `name-${index}.test`)].join(", ")}]`;
const POLICIES: Readonly<Record<string, string>> = {
  "beside a container with a policy of 1,000 names": `other: {for: [network=n2], mode: enforce, allow: ${listed}}`,
  "audited, the name is one of 1,000": `app: {for: [network=n1], mode: audit, allow: ${listed}}`,
  "enforced, the name is one of 1,000": `app: {for: [network=n1], mode: enforce, allow: ${listed}}`,
  "enforced, the name is below a wildcard": 'app: {for: [network=n1], mode: enforce, allow: ["**.ok.test"]}',
};

export async function benchPolicy(pace: Pace): Promise<Row[]> {
  await using engine = await startEngine();
  await using _ = await startUpstream(engine);
  for (const network of ["n1", "n2"]) await createNetwork(engine, network);
  const app = await runContainer(engine, { name: "app", networks: ["n1"] });
  await runContainer(engine, { name: "web", networks: ["n1"] });
  await runContainer(engine, { name: "other", networks: ["n2"] });
  const settings = join(engine.folder, "policy.yaml");
  writeFileSync(settings, HEAD);
  await using instance = await startDns11(engine, { args: ["--config", settings] });
  const reload = async (text: string): Promise<void> => {
    writeFileSync(settings, text);
    await instance.reload();
  };
  const rows: Row[] = [];
  for (const name of QUERIES) {
    const file = join(engine.folder, "policy-queries");
    writeFileSync(file, `${name} A\n`);
    const input: DnsperfInput = { file, rcode: "NOERROR" };
    const micros = async (seconds: number): Promise<number> =>
      (await atFullSpeed(app, input, instance.pid, seconds)).cpuMicros ?? Number.NaN;
    await micros(pace.warmSeconds + pace.startSeconds);
    for (const [what, policy] of Object.entries(POLICIES)) {
      const ratios: number[] = [];
      const times: Record<"without" | "with", number[]> = { without: [], with: [] };
      for (let round = 0; round < pace.rounds; round++) {
        const cpu = { without: 0, with: 0 };
        for (const which of ["without", "with", "with", "without"] as const) {
          await reload(which === "with" ? `${HEAD}policies:\n  ${policy}\n` : HEAD);
          cpu[which] += (await micros(pace.seconds / 2)) / 2;
        }
        ratios.push(cpu.with / cpu.without);
        for (const which of ["without", "with"] as const) times[which].push(cpu[which]);
      }
      const [without, beside] = [median(times.without), median(times.with)].map((each) => each.toFixed(2));
      const measured = `${readable(spreadOf(ratios), 2)} x: ${beside} us, ${without} us without policies`;
      rows.push({ what: `${name}, ${what}`, measured });
    }
  }
  const took: number[] = [];
  const denied = `${HEAD}policies:\n  app: {for: [network=n1], mode: enforce, deny: [web]}\n`;
  for (let times = 0; times < RELOADS; times++) {
    const startMs = performance.now();
    await reload(times % 2 === 0 ? denied : HEAD);
    took.push(performance.now() - startMs);
    const expected = times % 2 === 0 ? "NXDOMAIN" : "NOERROR";
    if ((await dig(app, "web")).status !== expected) throw new Error("a policy is not in force");
  }
  rows.push({
    what: "a reload is asked for until its policy is in force, p50",
    measured: `${quantile(took, 0.5).toFixed(0)} ms`,
  });
  return rows;
}
