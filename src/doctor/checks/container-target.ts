/**
 * Patient: the container that is looked at, and what a running dns11 says that it is to it.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { Server } from "../../base/model/view.ts";
import type { NamespaceRunner } from "../../container/namespace/namespace-runner.ts";
import type { ContainerFact } from "../../container/registry/fact.ts";
import type { ContainerResolvConf } from "./resolv-conf-check.ts";

export interface ContainerTarget {
  readonly fact: ContainerFact;
  /** Its network namespace. */
  readonly fd: number;
  readonly resolvConf: ContainerResolvConf;
  /** Where dns11 serves it: the ports at which it says that it listens. */
  readonly served: { readonly udp: number; readonly tcp: number } | undefined;
  /** Whether queries are led to dns11 at this moment, or should be again soon. */
  readonly isAnswered: boolean;
  /** The servers that are asked for what is no container's name. */
  readonly servers: readonly Server[];
}

export interface CheckTools {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  /** The network namespace of the engine's host. */
  readonly hostNetwork: number;
}
