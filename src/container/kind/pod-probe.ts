/**
 * PodProbe: probes the node's addresses from a test pod, periodically and after changes that affect pods. A probe from the node
 * itself may succeed where a pod's fails.
 */
import { isIPv6 } from "node:net";

import { LIMITS } from "../../base/limits.ts";
import { deleteConversations } from "../../kernel/conntrack.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import type { ServedNamespace } from "../attach/attach-mode.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import { type PodNamespace, conversationsOf, openPodNamespace, removePodLink } from "./pod-namespace.ts";

/** The conntrack zone of packets that no rule assigns to another one. */
const DEFAULT_ZONE = 0;

export interface ProbeTargets {
  readonly addresses: readonly string[];
  /** Whether the namespace is still served; otherwise its descriptor may have been reused. */
  readonly isCurrent: () => boolean;
}

export class PodProbe {
  readonly #runner: NamespaceRunner;
  readonly #memory: NetlinkMemory;
  /** The last test pod. */
  #pod: PodNamespace | undefined;
  #isDue = true;
  #lastMs = 0;
  #failures: readonly string[] = [];

  constructor({ runner, memory }: { readonly runner: NamespaceRunner; readonly memory: NetlinkMemory }) {
    this.#runner = runner;
    this.#memory = memory;
  }

  /** The time of the last probe; 0 for never. */
  get lastMs(): number {
    return this.#lastMs;
  }

  /** The redirects for pods have changed: the next probe is due. */
  expire(): void {
    this.#isDue = true;
  }

  /** Returns the failures, a sentence each. Does nothing and returns none while no probe is due. */
  async probe(served: ServedNamespace, targets: ProbeTargets): Promise<readonly string[]> {
    // Also after the machine's clock has been set back.
    const sinceMs = Math.abs(Date.now() - this.#lastMs);
    if (!this.#isDue && this.#failures.length === 0 && sinceMs < LIMITS.podProbeEveryMs) return [];
    this.#isDue = false;
    this.#failures = await this.#probeNow(served, targets);
    return this.#failures;
  }

  /** Call inside the node, at the end. */
  clear(): void {
    if (this.#pod !== undefined) removePodLink(this.#memory, this.#pod.link);
    this.#pod = undefined;
  }

  async #probeNow(served: ServedNamespace, { addresses, isCurrent }: ProbeTargets): Promise<readonly string[]> {
    let pod: PodNamespace;
    try {
      pod = await openPodNamespace(this.#runner, this.#memory, served.fd);
    } catch (error) {
      return [`cannot create a test pod: ${reasonOf(error)}`];
    }
    this.#pod = isCurrent() ? pod : undefined;
    const reachable = addresses.filter((each) => !isIPv6(each) || pod.addresses.ipv6 !== undefined);
    try {
      return await probeAll(served, { addresses: reachable, isCurrent }, "a pod", pod);
    } finally {
      try {
        if (isCurrent()) served.within(() => this.#deleteEntries(pod, reachable, served.zone));
      } finally {
        pod.abandon();
        this.#lastMs = Date.now();
      }
    }
  }

  #deleteEntries(pod: PodNamespace, addresses: readonly string[], zone: number): void {
    deleteConversations(this.#memory, conversationsOf(pod, addresses), [DEFAULT_ZONE, zone]);
  }
}

/** Probes each address from the node itself or from a test pod. Returns the failures, a sentence each. */
export async function probeAll(
  served: ServedNamespace,
  { addresses, isCurrent }: ProbeTargets,
  client: string,
  from?: PodNamespace,
): Promise<string[]> {
  const failures: string[] = [];
  for (const address of addresses) {
    if (!isCurrent()) break;
    const result = await served.probe(address, from);
    if (result.kind === "broken") failures.push(`${client} cannot query ${address}: ${result.failures.join("; ")}`);
  }
  return failures;
}
