/**
 * Serving: what exists while a namespace is served.
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

export interface Serving {
  capture: Capture;
  /** One pair for each lead of the capture. */
  pairs: readonly NamespaceSockets[];
  /** Every pair that was ever bound: one to which nothing leads any more waits until something does again. */
  bound: readonly NamespaceSockets[];
  readonly endpoint: Endpoint;
  readonly rules: RuleSet;
  /** The connection tracking zone of its conversations. */
  readonly zone: number;
  /** Only probes are led to us so far. */
  isTrial: boolean;
  /** The namespace's descriptor is not ours any more: its number may be another's. */
  isEnded: boolean;
  /** Who takes the rules away should we end, where somebody does. */
  hold: Hold | undefined;
}

/** What another process needs to take the rules away, or to go on; undefined for rules that a netlink socket cannot change. */
export function heldOf(
  id: NamespaceId,
  { rules: keeper, zone, bound }: Pick<Serving, "rules" | "zone" | "bound">,
  spared: readonly number[],
): HeldNamespace | undefined {
  const { removal } = keeper;
  return removal && { id, ...removal, zone, spared, pairs: bound };
}

export function listeningOf(pairs: readonly NamespaceSockets[]): ListenAddress[] {
  return pairs.map(({ listening }) => listening);
}

/** What rules are made from; `spared` are conversations with Docker's resolver that were under way before. */
export function planInputOf(
  { capture, pairs, zone }: Pick<Serving, "capture" | "pairs" | "zone">,
  spared: readonly number[],
): PlanInput {
  const listening = listeningOf(pairs);
  return { capture, listening, zone, sparedPorts: spared, passthroughMark: PASSTHROUGH_MARK, trialMark: TRIAL_MARK };
}

/** The namespace as a mode sees it, which waits in between: by then the descriptor may be another namespace's. */
export function servedNamespaceOf(
  serving: Pick<Serving, "isEnded" | "zone">,
  parts: {
    readonly fd: number;
    readonly runner: NamespaceRunner;
    readonly probe: ServedNamespace["probe"];
  },
): ServedNamespace {
  const current = (): number => {
    if (serving.isEnded) throw new Fault("ENDED", "The namespace is not served any more");
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
