// Project: the containers of the topology on a running engine, by role. A role is not always the container's name.

import type { ContainerInspectInfo } from "dockerode";

import { type ContainerOptions, createNetwork, runContainer } from "../../support/engine/container.ts";
import type { Engine } from "../../support/engine/engine.ts";
import { ensureImage } from "../../support/engine/image.ts";
import { LOST_SERVER, NETWORKS, STAGES } from "./topology.ts";

const { net1, dual, six, inner, ...others } = NETWORKS;

export type Project = ReadonlyMap<string, ContainerInspectInfo>;

export async function startProject(engine: Engine): Promise<Project> {
  await createNetwork(engine, net1);
  await createNetwork(engine, dual, { ipv6: true, subnet6: "fd11::/32" });
  await createNetwork(engine, inner, { internal: true });
  await createNetwork(engine, six, { args: ["--ipv4=false", "--ipv6", "--subnet", "fd16::/64"] });
  for (const name of Object.values(others)) await createNetwork(engine, name);
  await ensureImage(engine);
  const ids = new Map<string, string>();
  for (const stage of STAGES) await startStage(engine, stage, ids);
  await arrange(engine, ids);
  return await inspectAll(engine, ids);
}

// The engine can start several containers at once, but not all of them.
const AT_ONCE = 6;

async function startStage(
  engine: Engine,
  stage: Readonly<Record<string, ContainerOptions>>,
  ids: Map<string, string>,
): Promise<void> {
  const left = Object.entries(stage);
  const startSome = async (): Promise<void> => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      ids.set(next[0], (await runContainer(engine, next[1])).id);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, startSome));
}

// States that need a command after the start.
async function arrange(engine: Engine, ids: Map<string, string>): Promise<void> {
  await engine.docker("network", "connect", net1, "from-bridge");
  await engine.docker("stop", "stopped");
  await engine.docker("rename", "before", "after");
  await engine.docker("rename", "bridged", "bridged-too");
  const template = `{{.NetworkSettings.Networks.${inner}.IPAddress}}`;
  const address = await engine.docker("inspect", "--format", template, "server");
  const dns = [LOST_SERVER, address];
  ids.set("innerGiven", (await runContainer(engine, { name: "inner-given", networks: [inner], dns })).id);
}

async function inspectAll(engine: Engine, ids: ReadonlyMap<string, string>): Promise<Project> {
  const text = await engine.docker("inspect", "--type", "container", ...ids.values());
  const containers = JSON.parse(text) as ContainerInspectInfo[];
  const byId = new Map(containers.map((container) => [container.Id, container]));
  return new Map([...ids].flatMap(([role, id]) => [byId.get(id)].flatMap((found) => (found ? [[role, found]] : []))));
}

export function get(project: Project, role: string): ContainerInspectInfo {
  const container = project.get(role);
  if (container === undefined) throw new Error(`no container has the role "${role}"`);
  return container;
}

export function nameOf(project: Project, role: string): string {
  return get(project, role).Name.slice(1);
}
