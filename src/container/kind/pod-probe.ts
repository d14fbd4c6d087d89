/**
 * PodProbe: asks as a pod of a node does, from time to time and when something has changed that pods depend on. A probe of
 * the node itself comes through where a pod's does not.
 */
import { isIPv6 } from "node:net";

import { LIMITS } from "../../base/limits.ts";
import { deleteConversations } from "../../kernel/conntrack.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import type { ServedNamespace } from "../attach/attach-mode.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import { type PodNamespace, conversationsOf, openPodNamespace, removePodLink } from "./pod-namespace.ts";

/** The zone of what no rule puts into another one. */
const DEFAULT_ZONE = 0;

export interface ProbeTargets {
  readonly addresses: readonly string[];
  /** Whether the site is still the one that is served: its descriptor may be another's otherwise. */
  readonly isCurrent: () => boolean;
}

export class PodProbe {
  readonly #runner: NamespaceRunner;
  readonly #memory: NetlinkMemory;
  /** What was made last. */
  #pod: PodNamespace | undefined;
  #isDue = true;
  #lastMs = 0;
  #failures: readonly string[] = [];

  constructor({ runner, memory }: { readonly runner: NamespaceRunner; readonly memory: NetlinkMemory }) {
    this.#runner = runner;
    this.#memory = memory;
  }

  /** When a pod's query was last seen to come through, or not to; 0 for never. */
  get lastMs(): number {
    return this.#lastMs;
  }

  /** What pods are led to has changed. */
  expire(): void {
    this.#isDue = true;
  }

  /** What does not come through, a sentence each: as seen now, or the last time, where nothing calls for another look. */
  async probe(site: ServedNamespace, asked: ProbeTargets): Promise<readonly string[]> {
    const isDue = this.#isDue || this.#failures.length > 0 || Date.now() - this.#lastMs >= LIMITS.podProbeEveryMs;
    if (!isDue) return [];
    this.#isDue = false;
    this.#failures = await this.#askNow(site, asked);
    return this.#failures;
  }

  /** To be called in the node, at the end. */
  clear(): void {
    if (this.#pod !== undefined) removePodLink(this.#memory, this.#pod.link);
    this.#pod = undefined;
  }

  async #askNow(site: ServedNamespace, { addresses, isCurrent }: ProbeTargets): Promise<readonly string[]> {
    let pod: PodNamespace;
    try {
      pod = await openPodNamespace(this.#runner, this.#memory, site.fd);
    } catch (error) {
      return [`no pod could be made to ask from: ${reasonOf(error)}`];
    }
    this.#pod = isCurrent() ? pod : undefined;
    const possible = addresses.filter((each) => !isIPv6(each) || pod.addresses.ipv6 !== undefined);
    try {
      return await probeAll(site, { addresses: possible, isCurrent }, "a pod", pod);
    } finally {
      try {
        if (isCurrent()) site.within(() => this.#forget(pod, possible, site.zone));
      } finally {
        pod.abandon();
        this.#lastMs = Date.now();
      }
    }
  }

  #forget(pod: PodNamespace, addresses: readonly string[], zone: number): void {
    deleteConversations(this.#memory, conversationsOf(pod, addresses), [DEFAULT_ZONE, zone]);
  }
}

/** Asks each address, from the node itself or from another place, and says what does not come through. */
export async function probeAll(
  site: ServedNamespace,
  { addresses, isCurrent }: ProbeTargets,
  who: string,
  from?: PodNamespace,
): Promise<string[]> {
  const failures: string[] = [];
  for (const address of addresses) {
    if (!isCurrent()) break;
    const result = await site.probe(address, from);
    if (result.kind === "broken") failures.push(`${who} cannot ask ${address}: ${result.failures.join("; ")}`);
  }
  return failures;
}
