// What `dns11 sandbox` adds to `docker run` of a container that ends at once: its own process, the policy, and a closed network.

import { performance } from "node:perf_hooks";

import type { FeaturePart } from "../../bench/feature-parts.ts";
import { type Row, median, quantile } from "../../bench/figures.ts";
import type { Pace } from "../../bench/pace.ts";
import { createNetwork } from "../../support/engine/container.ts";
import { startEngine } from "../../support/engine/engine.ts";
import { ensureImage } from "../../support/engine/image.ts";
import { run } from "../../support/program/command.ts";
import { dns11, startDns11 } from "../../support/program/dns11.ts";
import { benchAddresses } from "./addresses-bench.ts";

const RUNS_EACH = 5;

export const parts: readonly FeaturePart[] = [
  ["addresses", "Connections held to policies, in the kernel", benchAddresses],
  ["sandbox", "Starting a container in a sandbox", starts],
];

async function starts(pace: Pace): Promise<Row[]> {
  await using engine = await startEngine();
  const image = await ensureImage(engine);
  await createNetwork(engine, "plain");
  await using instance = await startDns11(engine, { env: { DNS11_LISTENER: "true", DNS11_EGRESS: "true" } });
  const place = ["-H", engine.host, "--state-dir", instance.stateDir];
  const words = ["run", "--rm", image, "true"];
  const env = { DOCKER_HOST: engine.host };
  const ways = {
    docker: async () => await run("docker", ["run", "--network", "plain", ...words.slice(1)], { env }),
    sandbox: async () => await dns11(["sandbox", ...place, "--allow", "a1.ok.test", "--", "docker", ...words]),
  };
  const times: Record<keyof typeof ways, number[]> = { docker: [], sandbox: [] };
  for (let round = 0; round < pace.rounds * RUNS_EACH; round++) {
    for (const way of ["docker", "sandbox"] as const) {
      const startMs = performance.now();
      const { code, stderr } = await ways[way]();
      if (code !== 0) throw new Error(stderr);
      times[way].push(performance.now() - startMs);
    }
  }
  const text = (at: (all: readonly number[]) => number): string =>
    `${Math.round(at(times.sandbox) - at(times.docker))} ms: ${Math.round(at(times.sandbox))}, docker run ${Math.round(at(times.docker))}`;
  return [
    { what: "added to docker run until it has ended, p50", measured: text(median) },
    { what: "the same, p95", measured: text((all) => quantile(all, 0.95)) },
  ];
}
