/**
 * KernelCheck: whether answers of the kernel arrive in a namespace, and what follows. On trial only probes depend on them:
 * a firewall that drops them costs no client a query. Later, a probe that fails leads back to the process alone. No query
 * is lost then either: the rules change first, and packets that have passed the old ones still find the program.
 */
import { LIMITS } from "../../base/limits.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import type { Within } from "../rules/exchange.ts";
import { probeKernel } from "../rules/kernel-probe.ts";
import { servingPlan, trialPlan } from "../rules/plan.ts";
import { type ProbeResult, TRIAL_MARK } from "../rules/probe.ts";
import { type Serving, planInputOf } from "./serving.ts";

/** The kernel answers from now on, or no longer; then why not. */
type Verdict = { readonly works: true } | { readonly works: false; readonly reason: string };

/** `result`: of the probe that the process answers. Returns undefined where nothing changes. */
export async function checkKernel(
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

export function applyVerdict(serving: Serving, spared: readonly number[], verdict: Verdict): void {
  const { kernel, endpoint, rules, isTrial } = serving;
  const { space } = kernel;
  kernel.isTrial = false;
  endpoint.setMemory(verdict.works ? space : undefined);
  if (!verdict.works) {
    space?.forget();
    kernel.space = undefined;
    kernel.reason = verdict.reason;
    setTimeout(() => space?.close(), LIMITS.drainQuietMs).unref();
  }
  const input = planInputOf(serving, spared);
  rules.replaceRules(isTrial ? trialPlan(input) : servingPlan(input));
}
