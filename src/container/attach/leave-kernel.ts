/**
 * LeaveKernel: from answers by the kernel back to those of the process alone, in a namespace where a probe shows that the
 * kernel's do not arrive. No query is lost: the rules change first, and packets that have passed the old ones still find
 * the program.
 */
import { LIMITS } from "../../base/limits.ts";
import { DOCKER_RESOLVER } from "../capture/capture.ts";
import type { Within } from "../rules/exchange.ts";
import { probeKernel } from "../rules/kernel-probe.ts";
import { servingPlan, trialPlan } from "../rules/plan.ts";
import type { ProbeResult } from "../rules/probe.ts";
import { type Serving, planInputOf } from "./serving.ts";

/** Why the kernel does not answer, if it should. `result`: of the probe that the process answers. */
export async function failureOfKernel(
  { kernel }: Serving,
  result: ProbeResult,
  within: Within,
): Promise<string | undefined> {
  if (kernel.space === undefined || result.kind === "unknown") return undefined;
  return result.kind === "broken"
    ? result.failures.join("; ")
    : await probeKernel(within, kernel.space, DOCKER_RESOLVER);
}

/** Has the process answer everything from now on. */
export function leaveKernel(serving: Serving, spared: readonly number[], reason: string): void {
  const { kernel, endpoint, rules, isTrial } = serving;
  const { space } = kernel;
  endpoint.setMemory(undefined);
  space?.forget();
  kernel.space = undefined;
  kernel.reason = reason;
  const input = planInputOf(serving, spared);
  rules.replaceRules(isTrial ? trialPlan(input) : servingPlan(input));
  setTimeout(() => space?.close(), LIMITS.drainQuietMs).unref();
}
