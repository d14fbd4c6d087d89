/**
 * DockerResolver: the addresses of a node at which Docker's resolver can be reached. It is the fallback when dns11 stops. KIND's
 * entrypoint moves it from 127.0.0.11 to another address, or tries to. A dockerd that restarts while its containers run
 * (live restore) listens on other ports, and corrects only the rules that it wrote itself.
 */
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { readXtables } from "../../kernel/xtables.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import { boundPorts } from "../namespace/listeners.ts";
import { type DockerRedirect, dockerRedirects, legacyRedirects } from "../rules/docker-redirects.ts";

export interface DockerResolver {
  /** Queries to these are redirected to it. */
  readonly reachableAt: readonly string[];
  /** Queries to these are redirected to a port where nothing listens. */
  readonly deadAt: readonly string[];
}

export async function findDockerResolver({
  within,
  memory,
}: Pick<NetNamespace, "within" | "memory">): Promise<DockerResolver> {
  const legacy = await legacyRedirects(await readXtables(within));
  return within(() => resolverOf([...dockerRedirects(memory), ...legacy]));
}

/** Call inside the namespace. */
function resolverOf(all: readonly DockerRedirect[]): DockerResolver {
  const redirects = all.filter(({ protocol }) => protocol === "udp");
  const listening = new Set(redirects.length === 0 ? [] : boundPorts(DOCKER_RESOLVER, "udp"));
  // The first of several rules for one address applies.
  const ports = new Map(redirects.toReversed().map(({ destination, port }) => [destination, port]));
  const isReachable = (destination: string): boolean => listening.has(ports.get(destination) ?? 0);
  const destinations = [...ports.keys()].toReversed();
  return {
    reachableAt: destinations.filter(isReachable),
    deadAt: destinations.filter((address) => !isReachable(address)),
  };
}

/** A sentence; undefined if nothing is wrong. */
export function problemWith({ reachableAt, deadAt }: DockerResolver): string | undefined {
  if (reachableAt.length === 0 && deadAt.length === 0)
    return "Docker's resolver is unreachable: no rule redirects to it";
  if (deadAt.length === 0) return undefined;
  const redirected = `queries to ${deadAt.join(" and ")} are redirected to a port where nothing listens`;
  const cause = "as after a restart of dockerd while containers run";
  if (reachableAt.length === 0) return `Docker's resolver is unreachable: ${redirected}, ${cause}`;
  return `Docker's resolver answers only at ${reachableAt.join(" and ")}: ${redirected}, ${cause}`;
}

/** Only a restart of the node makes Docker, and KIND's entrypoint, set everything up again. */
export function restartCommand(node: string): string {
  return `docker restart ${node}`;
}
