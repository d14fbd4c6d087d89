// Attaching: from the facts of a container to rules that were verified, in real namespaces; one after the other, and a
// thousand at once; and what each of them costs in memory. The engine is left out: its answers are what this starts from.

import { LIMITS } from "../../src/config/limits.ts";
import { warmThreadPool } from "../../src/container/namespace/bracket.ts";
import type { ContainerFact } from "../../src/container/registry/fact.ts";
import { splitLabels } from "../../src/container/registry/labels.ts";
import { foreseeDescriptors } from "../../src/kernel/descriptors.ts";
import type { EngineWay } from "../../src/run/engine/engine-way.ts";
import { composeHere } from "../support/program/engine-way.ts";
import { removeNetnses, makeNetnses } from "./namespaces.ts";
import { type Row, median, quantile } from "./figures.ts";

const ONE_BY_ONE = 200;
const AT_ONCE = 1000;
const NETWORK = { id: "n1", name: "n1", driver: "bridge", scope: "local", isInternal: false };

export async function benchAttach(): Promise<Row[]> {
  const paths = await makeNetnses(ONE_BY_ONE + AT_ONCE);
  try {
    foreseeDescriptors();
    await warmThreadPool();
    const { way, close } = composeHere();
    const idleBytes = settledRss();
    const times: number[] = [];
    for (const [index, path] of paths.slice(0, ONE_BY_ONE).entries()) {
      const startMs = performance.now();
      way.roster.put(factOf(index, path));
      await untilAttached(way, index + 1);
      times.push(performance.now() - startMs);
    }
    for (let index = 0; index < ONE_BY_ONE; index++) way.roster.remove(idOf(index));
    await untilAttached(way, 0);
    const startMs = performance.now();
    // Others: those are being left still.
    for (const [index, path] of paths.entries()) if (index >= ONE_BY_ONE) way.roster.put(factOf(index, path));
    await untilAttached(way, AT_ONCE);
    const allMs = performance.now() - startMs;
    const perContainer = (settledRss() - idleBytes) / AT_ONCE;
    await way.reconciler.stop();
    close();
    const [p50, p99] = [median(times), quantile(times, 0.99)];
    return [
      row("attach and verify, one by one, p50", `${p50.toFixed(2)} ms`, "<= 2 ms", p50 <= 2),
      row("attach and verify, one by one, p99", `${p99.toFixed(2)} ms`, "<= 20 ms", p99 <= 20),
      row(`attach and verify, ${AT_ONCE} at once`, `${allMs.toFixed(0)} ms`, "<= 2000 ms", allMs <= 2000),
      row("memory a container", `${(perContainer / 1e3).toFixed(1)} kB`, "<= 40 kB", perContainer <= 40e3),
    ];
  } finally {
    removeNetnses(paths);
  }
}

async function untilAttached({ reconciler, directory }: EngineWay, count: number): Promise<void> {
  if (directory.containers.size === 0 && count > 0) throw new Error("No facts");
  const deadlineMs = performance.now() + LIMITS.listMs;
  for (;;) {
    let attached = 0;
    for (const [, { state }] of reconciler.attachments()) {
      if (state.kind === "failed") throw new Error(`Not attached: ${state.reason}`);
      if (state.kind === "attached") attached++;
    }
    if (attached === count) return;
    if (performance.now() > deadlineMs) throw new Error(`Only ${attached} of ${count} were attached in time`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function factOf(index: number, path: string): ContainerFact {
  const endpoint = {
    endpointId: `e${index}`,
    networkId: NETWORK.id,
    networkName: NETWORK.name,
    names: [`c${index}`, idOf(index).slice(0, 12)],
    links: [],
    ipv4: `10.0.${index >> 8}.${index & 255}`,
    ipv6: undefined,
    ipv4Gateway: "192.0.2.1",
    ipv6Gateway: undefined,
    gatewayPriority: 0,
  };
  return {
    id: idOf(index),
    name: `c${index}`,
    isPaused: false,
    pid: 0,
    sandboxKey: path,
    networkMode: NETWORK.name,
    ...splitLabels({}, {}),
    startedAt: "",
    resolvConfPath: undefined,
    kindSearch: undefined,
    hostGateway: undefined,
    nameservers: { kind: "unknown" },
    endpoints: [endpoint],
  };
}

function idOf(index: number): string {
  return index.toString(16).padStart(64, "0");
}

// After what can be collected was collected.
function settledRss(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss();
}

function row(what: string, measured: string, target: string, isReached: boolean): Row {
  return { what, measured, target, isReached };
}
