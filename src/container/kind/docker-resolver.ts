/**
 * DockerResolver: whether Docker's own resolver can be asked in a node, and at which addresses: who answers when we are
 * gone. KIND's entrypoint leads it to another address than 127.0.0.11, or tries to; and a dockerd that is started anew
 * while its containers run listens at other ports, and corrects only those rules that it wrote itself.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import { boundPorts } from "../namespace/listeners.ts";
import { dockerRedirects } from "../rules/docker-redirects.ts";

export interface DockerResolver {
  /** Who asks these is led to it. */
  readonly reachableAt: readonly string[];
  /** Who asks these is led to where nobody listens. */
  readonly deadAt: readonly string[];
}

/** To be called inside the namespace. */
export function findDockerResolver(memory: NetlinkMemory): DockerResolver {
  const leads = dockerRedirects(memory).filter(({ protocol }) => protocol === "udp");
  const waiting = new Set(leads.length === 0 ? [] : boundPorts(DOCKER_RESOLVER, "udp"));
  // Of several rules for one address the first one counts.
  const ports = new Map(leads.toReversed().map(({ destination: asked, port }) => [asked, port]));
  const isAnswering = (asked: string): boolean => waiting.has(ports.get(asked) ?? 0);
  const asked = [...ports.keys()].toReversed();
  return { reachableAt: asked.filter(isAnswering), deadAt: asked.filter((address) => !isAnswering(address)) };
}

/** What is wrong with it, a sentence; undefined where nothing is. */
export function problemWith({ reachableAt: answering, deadAt: dead }: DockerResolver): string | undefined {
  if (answering.length === 0 && dead.length === 0) return "Docker's resolver is gone: no rule leads to it";
  if (dead.length === 0) return undefined;
  const led = `what is asked at ${dead.join(" and ")} is led to a port at which nobody listens`;
  const cause = "as when dockerd is started anew while containers run";
  if (answering.length === 0) return `Docker's resolver is gone: ${led}, ${cause}`;
  return `Docker's resolver answers at ${answering.join(" and ")} alone: ${led}, ${cause}`;
}

/** Starting a node anew has Docker, and KIND's entrypoint, make it all again; nothing less does. */
export function restartRemedy(node: string): string {
  return `docker restart ${node} sets it up again`;
}
