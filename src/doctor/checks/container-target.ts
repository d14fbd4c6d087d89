/**
 * ContainerTarget: the container to check, with what a running dns11 reports about it.
 */
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import type { Server } from "../../base/model/view.ts";
import type { NamespaceRunner } from "../../container/namespace/namespace-runner.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { Announce } from "../../container/rules/own-name.ts";
import type { ContainerResolvConf } from "./resolv-conf-check.ts";

export interface ContainerTarget {
  readonly fact: ContainerFact;
  /** Its network namespace. */
  readonly fd: number;
  readonly resolvConf: ContainerResolvConf;
  /** The ports that dns11 reports to listen on; undefined if it does not serve the container. */
  readonly served: { readonly udp: number; readonly tcp: number } | undefined;
  /** Announces test queries; does nothing without a running dns11. */
  readonly announce: Announce;
  /** Queries are redirected to dns11 now, or will be again soon. */
  readonly isAnswered: boolean;
  /** Docker's resolver has its name. */
  readonly isNamed: boolean;
  /** The upstream servers, for names that are not container names. */
  readonly servers: readonly Server[];
}

export interface CheckTools {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  /** The network namespace of the engine's host. */
  readonly hostNetwork: number;
}
