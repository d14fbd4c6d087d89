/**
 * Serving: what exists while a namespace is served: sockets, rules and the endpoint.
 */
import type { Capture } from "../capture/capture.ts";
import { Fault } from "../../base/lib/fault.ts";
import type { HeldNamespace, Hold } from "../../base/model/held-namespace.ts";
import type { NamespaceRunner, NamespaceId } from "../namespace/namespace-runner.ts";
import { PASSTHROUGH_MARK } from "../namespace/dial.ts";
import type { NamespaceSockets } from "../namespace/sockets.ts";
import type { RuleSet } from "../rules/rule-set.ts";
import type { ListenAddress, PlanInput } from "../rules/plan.ts";
import { TRIAL_MARK } from "../rules/probe.ts";
import type { ServedNamespace } from "./attach-mode.ts";
import type { Endpoint } from "./endpoint.ts";
import type { KernelTier } from "./kernel-tier.ts";

export interface Serving {
  capture: Capture;
  /** One pair for each redirect of the capture. */
  pairs: readonly NamespaceSockets[];
  /** Every pair that was ever bound. One without a redirect stays open for when there is one again. */
  bound: readonly NamespaceSockets[];
  readonly endpoint: Endpoint;
  readonly rules: RuleSet;
  /** The conntrack zone of its connections. */
  readonly zone: number;
  /** What the kernel answers here. */
  readonly kernel: KernelTier;
  /** Only probes are redirected so far. */
  isTrial: boolean;
  /** The namespace's descriptor is closed: its number may be reused. */
  isEnded: boolean;
  /** The keeper's copy, from which it removes the rules if this process dies; undefined without a keeper. */
  hold: Hold | undefined;
}

/**
 * What another process needs to remove the rules or to take over; undefined for rules that a netlink socket cannot
 * change.
 */
export function heldOf(
  id: NamespaceId,
  { rules, zone, bound, kernel }: Pick<Serving, "rules" | "zone" | "bound" | "kernel">,
  spared: readonly number[],
): HeldNamespace | undefined {
  const { removal } = rules;
  return removal && { id, ...removal, zone, spared, pairs: bound, programs: kernel.space?.held ?? [] };
}

export function listenAddressesOf(pairs: readonly NamespaceSockets[]): ListenAddress[] {
  return pairs.map(({ listening }) => listening);
}

/** The input of a rule plan; `spared` are client ports of connections to Docker's resolver from before. */
export function planInputOf(
  { capture, pairs, zone, kernel }: Pick<Serving, "capture" | "pairs" | "zone" | "kernel">,
  spared: readonly number[],
): PlanInput {
  const listening = listenAddressesOf(pairs);
  const untracked = kernel.space === undefined ? "none" : kernel.isTrial ? "probes" : "all";
  const marks = { passthroughMark: PASSTHROUGH_MARK, trialMark: TRIAL_MARK };
  return { capture, listening, zone, untracked, sparedPorts: spared, ...marks };
}

/** The namespace as a mode sees it. A mode awaits, and by then the descriptor's number may be reused. */
export function servedNamespaceOf(
  serving: Pick<Serving, "isEnded" | "zone">,
  parts: {
    readonly fd: number;
    readonly runner: NamespaceRunner;
    readonly probe: ServedNamespace["probe"];
  },
): ServedNamespace {
  const current = (): number => {
    if (serving.isEnded) throw new Fault("ENDED", "The namespace is no longer served");
    return parts.fd;
  };
  return {
    get fd() {
      return current();
    },
    zone: serving.zone,
    within: (work) => parts.runner.within(current(), work),
    probe: async (destination, from) => (serving.isEnded ? { kind: "unknown" } : await parts.probe(destination, from)),
  };
}
