// The listener on the host beside 127.0.0.11: the same names of the same dns11 from the same container, in turn, at a rate below the limit
// of an asker.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { LISTENER_ADDRESSES } from "../../../src/base/model/listener-addresses.ts";
import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { startDns11 } from "../../support/program/dns11.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { cpuSeconds } from "../../bench/cpu-time.ts";
import { type DnsperfInput, steadily } from "../../bench/dnsperf.ts";
import { type Row, readable, spreadOf } from "../../bench/figures.ts";
import type { FeaturePart } from "../../bench/feature-parts.ts";
import type { Pace } from "../../bench/pace.ts";
import { RESOLVER } from "../../bench/redirect.ts";

const PER_SECOND = 2_000;
const WAYS = [
  { way: "127.0.0.11, answered by the process", server: RESOLVER },
  { way: `${LISTENER_ADDRESSES.ipv4}, the listener`, server: LISTENER_ADDRESSES.ipv4 },
] as const;

interface Measured {
  readonly cpuMicros: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export const parts: readonly FeaturePart[] = [
  ["listener", "The listener on the host beside 127.0.0.11", benchListener],
];

async function benchListener(pace: Pace): Promise<Row[]> {
  await using engine = await startEngine();
  await createNetwork(engine, "n1");
  const web = await runContainer(engine, { name: "web", networks: ["n1"] });
  const client = await runContainer(engine, { name: "client", networks: ["n1"] });
  await using instance = await startDns11(engine, {
    settings: { listener: "true", keeper: "off" },
    env: { DNS11_ANSWERS: "process" },
  });
  await waitFor("the listener", async () => {
    const reply = await dig(client, `@${LISTENER_ADDRESSES.ipv4}`, "web", "+time=1");
    return dataOf(reply)[0] === web.address("n1") ? true : undefined;
  });
  const file = questions(engine);
  const all = WAYS.map((): Measured[] => []);
  for (const { server } of WAYS) await measure(client, { file, rcode: "NOERROR", server }, instance.pid, 1);
  for (let round = 0; round < pace.rounds; round++) {
    console.error(`bench: listener, round ${round + 1} of ${pace.rounds}`);
    for (const [index, { server }] of WAYS.entries()) {
      all[index]?.push(await measure(client, { file, rcode: "NOERROR", server }, instance.pid, pace.seconds));
    }
  }
  return WAYS.map(({ way }, index) => {
    const of = (key: keyof Measured, digits: number): string =>
      readable(spreadOf((all[index] ?? []).map((each) => each[key])), digits);
    const measured = `${of("cpuMicros", 1)} us of CPU, p50 ${of("p50Ms", 3)} ms, p99 ${of("p99Ms", 2)} ms`;
    return { what: `container name, A, ${PER_SECOND} queries/s, at ${way}`, measured };
  });
}

async function measure(client: Container, input: DnsperfInput, pid: number, seconds: number): Promise<Measured> {
  const before = cpuSeconds(pid);
  const { p50Ms, p99Ms } = await steadily(client, input, seconds, PER_SECOND);
  const cpuMicros = ((cpuSeconds(pid) - before) / (PER_SECOND * seconds)) * 1e6;
  return { cpuMicros, p50Ms: p50Ms ?? Number.NaN, p99Ms: p99Ms ?? Number.NaN };
}

function questions(engine: Engine): string {
  const path = join(engine.folder, "listener-questions");
  writeFileSync(path, "web A\n");
  return path;
}
