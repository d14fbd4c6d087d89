/**
 * EngineEgress: builds what knows the links of containers on the engine's host, and what records their connections there.
 */
import { Egress } from "../../container/egress/egress.ts";
import type { ContainerFact, NetworkFact } from "../../container/facts/fact.ts";
import { ContainerLinks } from "../../container/links/container-links.ts";
import { openHostNetwork } from "../../container/namespace/engine-host.ts";
import { proveNamespace } from "../../container/namespace/proof.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import type { ContainerSideParts } from "../container-side.ts";
import type { Platform } from "../platform.ts";
import type { EngineAccess } from "./engine-link.ts";

export function openLinks(
  { runner, memory }: Pick<Platform, "runner" | "memory">,
  { host }: Pick<EngineAccess, "host">,
  networkOf: (id: string) => NetworkFact | undefined,
): ContainerLinks {
  return new ContainerLinks({
    runner,
    memory,
    host,
    prove: (claim) => proveNamespace(claim, host(), runner.homeId),
    networkOf,
  });
}

export function openEgress(
  { platform: { runner, memory }, querySide }: Pick<ContainerSideParts, "platform" | "querySide">,
  { host }: Pick<EngineAccess, "host">,
  links: ContainerLinks,
  containers: () => Iterable<ContainerFact>,
): Egress {
  return new Egress({
    links,
    containers,
    networkId: () => host().networkId,
    openNetns: () => {
      const fd = openHostNetwork(host());
      return { netns: runner.namespaceOf(fd, memory), close: () => closeQuietly(fd) };
    },
    namesOf: (id, address, untilMs) => querySide.answered.of(id, address, untilMs),
  });
}
