/**
 * KernelCheck: whether answers of the kernel arrive in a namespace, and what follows. On trial only probes depend on them:
 * a firewall that drops them costs no client a query. Later, a probe that fails leads back to the process alone. No query
 * is lost then either: the rules change first, and packets that have passed the old ones still find the program. Then it
 * is tried again, on trial, after pauses that grow.
 */
import { LIMITS } from "../../base/limits.ts";
import { CONTAINER_CAPTURE, type Capture, DOCKER_RESOLVER } from "../capture/capture.ts";
import type { Within } from "../rules/exchange.ts";
import { probeKernel } from "../rules/kernel-probe.ts";
import { type Protocol, servingPlan, trialPlan } from "../rules/plan.ts";
import { type ProbeResult, TRIAL_MARK } from "../rules/probe.ts";
import { type KernelTierParts, ONLY_CONTAINERS, isTierDue, reopenKernelTier } from "./kernel-tier.ts";
import { type Serving, planInputOf } from "./serving.ts";

/** The kernel answers from now on, or no longer; then why not. */
type Verdict = { readonly works: true } | { readonly works: false; readonly reason: string };

interface KernelCheckParts extends KernelTierParts {
  readonly within: Within;
  /** Why the kernel is not to answer here. */
  readonly notByKernel: string | undefined;
  readonly spared: readonly number[];
  /** Whether the namespace is still served, and in the same way. */
  readonly isCurrent: () => boolean;
  /** Probes the process. */
  readonly probe: (protocols: readonly Protocol[]) => Promise<ProbeResult>;
  /** The program has come, or gone. */
  readonly onChange: () => void;
}

/**
 * Has the kernel answer where a probe shows that it can, and the process where it cannot. `result` is that of the probe that
 * the process answers; returns that of the last one.
 */
export async function settleKernel(
  serving: Serving,
  result: ProbeResult,
  parts: KernelCheckParts,
): Promise<ProbeResult> {
  if (result.kind === "works" && !serving.isTrial && parts.isCurrent()) retry(serving, parts);
  const verdict = await checkKernel(serving, result, parts.within);
  if (verdict === undefined || !parts.isCurrent()) return result;
  applyVerdict(serving, parts.spared, verdict);
  parts.onChange();
  // What leads TCP to the process has not changed.
  const next = await parts.probe(result.kind === "works" ? ["udp"] : ["udp", "tcp"]);
  return await settleKernel(serving, next, parts);
}

/** Only probes depend on it, as at the start. */
function retry(serving: Serving, parts: KernelCheckParts): void {
  const { kernel, capture, pairs, rules } = serving;
  if (!isTierDue(kernel, parts)) return;
  const place = { capture, pairs, notByKernel: parts.notByKernel, hasWorked: false };
  if (!parts.within(() => reopenKernelTier(kernel, parts, place))) return;
  rules.replaceRules(servingPlan(planInputOf(serving, parts.spared)));
  parts.onChange();
}

/** `result`: of the probe that the process answers. Returns undefined where nothing changes. */
async function checkKernel(
  { kernel, isTrial }: Serving,
  result: ProbeResult,
  within: Within,
): Promise<Verdict | undefined> {
  const { space } = kernel;
  if (space === undefined || result.kind === "unknown") return undefined;
  if (kernel.isTrial) {
    if (result.kind === "broken" || isTrial) return undefined;
    const reason = await probeKernel(within, space, DOCKER_RESOLVER, TRIAL_MARK);
    return reason === undefined ? { works: true } : { works: false, reason };
  }
  const reason =
    result.kind === "broken" ? result.failures.join("; ") : await probeKernel(within, space, DOCKER_RESOLVER);
  return reason === undefined ? undefined : { works: false, reason };
}

/**
 * Other addresses are captured from now on: a KIND node may have been served as any container first. Call before the rules
 * change.
 */
export function adaptKernel(serving: Serving, capture: Capture): void {
  const { kernel } = serving;
  if (capture === serving.capture) return;
  if (capture !== CONTAINER_CAPTURE) {
    if (kernel.space === undefined) return;
    withdrawKernel(serving, ONLY_CONTAINERS);
    kernel.isMeant = true;
  } else if (kernel.isMeant) {
    kernel.isMeant = false;
    kernel.retry.forget();
  }
}

function applyVerdict(serving: Serving, spared: readonly number[], verdict: Verdict): void {
  const { kernel, endpoint, rules, isTrial } = serving;
  if (verdict.works) {
    kernel.isTrial = false;
    endpoint.setMemory(kernel.space);
  } else {
    withdrawKernel(serving, verdict.reason);
    kernel.retry.fail();
  }
  const input = planInputOf(serving, spared);
  rules.replaceRules(isTrial ? trialPlan(input) : servingPlan(input));
}

/** The rules are about to lead past it. Packets that have passed the old ones still find the program. */
function withdrawKernel({ kernel, endpoint }: Serving, reason: string): void {
  const { space } = kernel;
  endpoint.setMemory(undefined);
  space?.forget();
  Object.assign(kernel, { space: undefined, isTrial: false, reason });
  setTimeout(() => space?.close(), LIMITS.drainQuietMs).unref();
}
