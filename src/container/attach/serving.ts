/**
 * Serving: what exists while a namespace is served: sockets, rules and the endpoint.
 */
import { type Capture, DOCKER_RESOLVER, capturedInside, protocolsOf } from "../capture/capture.ts";
import { Fault } from "../../base/lib/fault.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import type { Passage } from "../namespace/passages.ts";
import type { NamespaceSockets } from "../namespace/sockets.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import type { RuleSet } from "../rules/rule-set.ts";
import type { ListenAddress, PlanInput } from "../rules/plan.ts";
import { type ProbeRequest, type ProbeResult, TRIAL_MARK, probe } from "../rules/probe.ts";
import type { ServedNamespace } from "./attach-mode.ts";
import type { Endpoint } from "./attachment-parts.ts";
import type { ServedExtra } from "./namespace-extra.ts";

export interface Serving {
  readonly netns: NetNamespace;
  capture: Capture;
  /** One pair for each redirect of the capture. */
  pairs: readonly NamespaceSockets[];
  /** Every pair that was ever bound. One without a redirect stays open for when there is one again. */
  bound: readonly NamespaceSockets[];
  readonly endpoint: Endpoint;
  readonly rules: RuleSet;
  /** The conntrack zone of its connections. */
  readonly zone: number;
  /** How our own queries pass its rules. */
  readonly passage: Passage;
  /** What is here besides; undefined where there is nothing. */
  readonly extra: ServedExtra | undefined;
  /** Only probes are redirected so far. */
  isTrial: boolean;
  /** Its rules close the ports of Docker's resolver, because a policy is enforced. */
  closesResolver: boolean;
  /** The namespace's descriptor is closed: its number may be reused. */
  isEnded: boolean;
}

export function listenAddressesOf(pairs: readonly NamespaceSockets[]): ListenAddress[] {
  return pairs.map(({ listening }) => listening);
}

/** The input of a rule plan; `spared` are client ports of connections to Docker's resolver from before. */
export function planInputOf(
  {
    capture,
    pairs,
    zone,
    extra,
    passage,
    closesResolver,
  }: Pick<Serving, "capture" | "pairs" | "zone" | "extra" | "passage" | "closesResolver">,
  spared: readonly number[],
): PlanInput {
  const listening = listenAddressesOf(pairs);
  const untracked = extra?.untracked ?? "none";
  const marks = { passthroughMark: passage.mark, passthroughGroup: passage.group, trialMark: TRIAL_MARK };
  return { capture, listening, zone, untracked, closesResolver, sparedPorts: spared, ...marks };
}

export interface ServingProbeRequest extends Partial<ProbeRequest> {
  /** A descriptor of the namespace to probe from, if it is another one. */
  readonly from?: number;
}

/** Sends a probe through its rules. */
export async function probeServing(
  { endpoint: { probeTarget }, isTrial, capture, netns }: Serving,
  runner: NamespaceRunner,
  { from = netns.fd, ...request }: ServingProbeRequest,
): Promise<ProbeResult> {
  const within = <T>(work: () => T): T => runner.within(from, work);
  const destination = capturedInside(capture)[0] ?? DOCKER_RESOLVER;
  return await probe(within, probeTarget, { destination, protocols: protocolsOf(capture), isTrial, ...request });
}

/** The namespace as a mode sees it. A mode awaits, and by then the descriptor's number may be reused. */
export function servedNamespaceOf(serving: Serving, runner: NamespaceRunner): ServedNamespace {
  const current = (): NetNamespace => {
    if (serving.isEnded) throw new Fault("ENDED", "The namespace is no longer served");
    return serving.netns;
  };
  return {
    get fd() {
      return current().fd;
    },
    zone: serving.zone,
    within: (work) => current().within(work),
    probe: async (destination, from) => {
      if (serving.isEnded) return { kind: "unknown" };
      const source = from && { from: from.fd, sourcePort: from.sourcePort };
      return await probeServing(serving, runner, { destination, ...source });
    },
  };
}
