/** A swarm of engines under test: its networks and services, created with the docker command, as users do. */
import type { DockerHost } from "./docker-host.ts";
import { ensureImage } from "./image.ts";

export interface ServiceOptions {
  readonly networks?: readonly string[];
  readonly replicas?: number;
  /** Further arguments of `docker service create`. */
  readonly args?: readonly string[];
  /** What runs instead of the image's program. */
  readonly command?: readonly string[];
}

/** Makes the engine the first manager of a swarm of its own. */
export async function initSwarm(host: DockerHost, address = "127.0.0.1"): Promise<void> {
  await host.docker("swarm", "init", "--advertise-addr", address);
}

/** A network of all machines, which containers may join by hand. */
export async function createOverlay(host: DockerHost, name: string, args: readonly string[] = []): Promise<string> {
  return await host.docker("network", "create", "--driver", "overlay", "--attachable", ...args, name);
}

/** Does not wait for its tasks. A network is a name, or "name=...,alias=...". */
export async function createService(host: DockerHost, name: string, options: ServiceOptions = {}): Promise<void> {
  const image = await ensureImage(host);
  const { networks = [], replicas, args = [], command = [] } = options;
  await host.docker(
    "service",
    "create",
    "--detach",
    "--quiet",
    "--no-resolve-image",
    "--name",
    name,
    ...networks.flatMap((network) => ["--network", network]),
    ...(replicas === undefined ? [] : ["--replicas", String(replicas)]),
    ...args,
    image,
    ...command,
  );
}
