// Containers without an engine: facts of any number of them on one network, and the wait until the kernel answers them.

import { COMPOSE_LABEL } from "../../src/base/model/compose.ts";
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

// The process serves them first.
export async function untilByKernel({ reconciler, features }: EngineSide): Promise<void> {
  const isByKernel = (id: string): boolean => features.some((each) => each.container?.(id).answers?.by === "kernel");
  await waitFor("the kernel's answers", () =>
    [...reconciler.attachments()].every(([id]) => isByKernel(id)) ? true : undefined,
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
