// Containers without an engine: facts of any number of them on one network, and the wait until they are attached.

import { COMPOSE_LABEL } from "../../src/base/model/compose-labels.ts";
import type { ContainerFact } from "../../src/container/facts/fact.ts";
import { splitLabels } from "../../src/container/facts/labels.ts";
import type { EngineSide } from "../../src/run/engine/engine-side.ts";
import { waitFor } from "../support/rig/wait.ts";

export const NETWORK = {
  id: "n1",
  name: "n1",
  driver: "bridge",
  scope: "local",
  isInternal: false,
  project: undefined,
};

const PROJECTS = 50;
// On the busiest machine.
const ATTACH_MS_MAX = 180_000;

export async function untilAttached({ reconciler, directory }: EngineSide, count: number): Promise<void> {
  if (directory.containers.size === 0 && count > 0) throw new Error("no facts");
  const deadlineMs = performance.now() + ATTACH_MS_MAX;
  for (;;) {
    let attached = 0;
    for (const [, { state }] of reconciler.attachments()) {
      if (state.kind === "failed") throw new Error(`not attached: ${state.reason}`);
      if (state.kind === "attached") attached++;
    }
    if (attached === count) return;
    if (performance.now() > deadlineMs) throw new Error(`only ${attached} of ${count} were attached in time`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

// The process serves them first.
export async function untilByKernel({ reconciler }: EngineSide): Promise<void> {
  await waitFor("the kernel's answers", () =>
    [...reconciler.attachments()].every(([, { answeredBy }]) => answeredBy?.by === "kernel") ? true : undefined,
  );
}

export function factOf(index: number, path: string): ContainerFact {
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
    health: undefined,
    pid: 0,
    sandboxKey: path,
    hostname: "",
    ports: { published: [], exposed: [], ofImage: [] },
    networkMode: NETWORK.name,
    domainName: "",
    ...splitLabels(labelsOf(index), {}),
    startedAt: "",
    resolvConfPath: undefined,
    kindSearch: undefined,
    extraHosts: [],
    nameservers: { kind: "unknown" },
    endpoints: [endpoint],
    onDefaultBridge: undefined,
  };
}

// As Compose sets them.
function labelsOf(index: number): Record<string, string> {
  const { project, service, number } = COMPOSE_LABEL;
  return { [project]: `p${index % PROJECTS}`, [service]: `s${index}`, [number]: "1" };
}

export function idOf(index: number): string {
  return index.toString(16).padStart(64, "0");
}
