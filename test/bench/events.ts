// From the engine's event to the answer: a container starts, and another one queries its name every millisecond until
// it resolves. The engine itself delays every resolver, because its inspect returns only after the start, so our share is
// measured from the moment when the engine reports the facts.

import { createNetwork, runContainer } from "../support/engine/container.ts";
import { startDns11 } from "../support/program/dns11.ts";
import { startEngine } from "../support/engine/engine.ts";
import { answers, getJson } from "../support/program/unix-http.ts";
import { waitFor } from "../support/rig/wait.ts";
import { type Row, median, quantile } from "./figures.ts";
import { nameProber } from "./name-prober.ts";

const NETWORK = "n1";
// With fewer, p99 would be the maximum.
const STARTS = 100;

export async function benchEvents(): Promise<Row[]> {
  await using engine = await startEngine();
  await createNetwork(engine, NETWORK);
  await using instance = await startDns11(engine);
  const client = await runContainer(engine, { name: "client", networks: [NETWORK] });
  await instance.waitFor("client", "attached");
  const prober = nameProber(client.netnsPath);
  const delays: number[] = [];
  const shares: number[] = [];
  for (let index = 0; index < STARTS; index++) {
    const name = `late${index}`;
    const answered = prober.until(name);
    const reportedMs = factsReportedMs(engine.socketPath, name);
    const container = await runContainer(engine, { name, networks: [NETWORK] });
    const atMs = await answered;
    shares.push(atMs - (await reportedMs));
    delays.push(atMs - (await startedAtMs(engine.docker.bind(engine), container.id)));
  }
  prober.close();
  await instance.stop();
  const p99 = quantile(shares, 0.99);
  return [
    { what: "event `start` until the name resolves in another container, p50", measured: milliseconds(median(delays)) },
    {
      what: "event `start` until the name resolves in another container, p99",
      measured: milliseconds(quantile(delays, 0.99)),
    },
    { what: "facts known until the name resolves in another container, p50", measured: milliseconds(median(shares)) },
    {
      what: "facts known until the name resolves in another container, p99",
      measured: milliseconds(p99),
      target: "<= 20 ms",
      isReached: p99 <= 20,
    },
  ];
}

function milliseconds(ms: number): string {
  return `${ms.toFixed(1)} ms`;
}

// Time at which the engine first reports that the container runs, and with which address.
async function factsReportedMs(socketPath: string, name: string): Promise<number> {
  return await waitFor(
    `the engine's facts about ${name}`,
    async () => {
      if (!(await answers(socketPath, `/containers/${name}/json`))) return undefined;
      const json = (await getJson(socketPath, `/containers/${name}/json`)) as Facts;
      const isKnown = json.State.Running && json.NetworkSettings.Networks[NETWORK]?.IPAddress !== "";
      return isKnown ? Date.now() : undefined;
    },
    { everyMs: 1 },
  );
}

type Facts = {
  readonly State: { readonly Running: boolean };
  readonly NetworkSettings: { readonly Networks: Readonly<Record<string, { readonly IPAddress: string }>> };
};

// The event's timestamp from the engine.
async function startedAtMs(docker: (...args: string[]) => Promise<string>, id: string): Promise<number> {
  const now = String(Math.ceil(Date.now() / 1000) + 1);
  const args = ["--since", "0", "--until", now, "--filter", `container=${id}`, "--filter", "event=start"];
  const text = await docker("events", ...args, "--format", "{{.TimeNano}}");
  return Number(BigInt(text.trim().split("\n")[0] ?? "0") / 1000n) / 1000;
}
