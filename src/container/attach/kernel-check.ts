/**
 * KernelCheck: whether answers of the kernel arrive in a namespace, and what follows. On trial only probes depend on them:
 * a firewall that drops them costs no client a query. Later, a probe that fails leads back to the process alone. No query
 * is lost then either: the rules change first, and packets that have passed the old ones still find the program. Then it
 * is tried again, on trial, after pauses that grow.
 */
import { LIMITS } from "../../base/limits.ts";
import { CONTAINER_CAPTURE, type Capture, DOCKER_RESOLVER } from "../capture/capture.ts";
import type { NetNamespace, Within } from "../../kernel/net-namespace.ts";
import { probeKernel } from "../rules/kernel-probe.ts";
import type { Protocol } from "../rules/plan.ts";
import { type ProbeResult, TRIAL_MARK } from "../rules/probe.ts";
import { type KernelTierParts, NOT_PROBED, ONLY_CONTAINERS, isTierDue, openKernelTier } from "./kernel-tier.ts";
import type { Serving } from "./serving.ts";

/** The kernel answers from now on, or no longer; then why not. */
type Verdict = { readonly works: true } | { readonly works: false; readonly reason: string };

interface KernelCheckParts extends KernelTierParts {
  readonly netns: NetNamespace;
  /** Replaces the rules by those that lead to the program, or past it, as it is now. */
  readonly replaceRules: () => Promise<void>;
  /** Whether the namespace is still served, and in the same way. */
  readonly isCurrent: () => boolean;
  /** Probes the process. */
  readonly probe: (protocols: readonly Protocol[]) => Promise<ProbeResult>;
  /** The program has come, or gone. */
  readonly onChange: () => void;
}

export class KernelCheck {
  readonly #serving: Serving;
  readonly #parts: KernelCheckParts;

  constructor(serving: Serving, parts: KernelCheckParts) {
    this.#serving = serving;
    this.#parts = parts;
  }

  /** Whether the program is to be attached now. */
  get isDue(): boolean {
    const { kernel, isTrial } = this.#serving;
    return !isTrial && this.#parts.isCurrent() && isTierDue(kernel, this.#parts);
  }

  /** It is due at the next verification, whatever has failed. */
  retry(): void {
    this.#serving.kernel.retry.forget();
  }

  /** Attaches the program, if it is due; returns whether it is there. Only probes depend on it until it is settled. */
  async open(): Promise<boolean> {
    if (!this.isDue) return false;
    const { kernel } = this.#serving;
    const portNow = (): number | undefined =>
      this.#parts.isCurrent() ? this.#serving.pairs[0]?.listening.udpPort : undefined;
    if (!(await openKernelTier(kernel, { ...this.#parts, mark: this.#serving.passage.mark }, portNow))) return false;
    await this.#parts.replaceRules();
    this.#parts.onChange();
    return true;
  }

  /**
   * Has the kernel answer where a probe shows that it can, and the process where it cannot. `result` is that of the probe that
   * the process answers; returns that of the last one.
   */
  async settle(result: ProbeResult): Promise<ProbeResult> {
    const verdict = await checkKernel(this.#serving, result, this.#parts.netns.within);
    if (verdict === undefined || !this.#parts.isCurrent()) return result;
    await this.#apply(verdict);
    this.#parts.onChange();
    // What leads TCP to the process has not changed.
    const next = await this.#parts.probe(result.kind === "works" ? ["udp"] : ["udp", "tcp"]);
    return await this.settle(next);
  }

  async #apply(verdict: Verdict): Promise<void> {
    const { kernel, endpoint } = this.#serving;
    if (verdict.works) {
      kernel.isTrial = false;
      endpoint.setMemory(kernel.space);
    } else {
      withdrawKernel(this.#serving, verdict.reason);
      kernel.retry.fail();
    }
    await this.#parts.replaceRules();
  }
}

/** `result`: of the probe that the process answers. Returns undefined where nothing changes. */
async function checkKernel(
  { kernel, isTrial }: Serving,
  result: ProbeResult,
  within: Within,
): Promise<Verdict | undefined> {
  const { space } = kernel;
  if (space === undefined || result.kind === "unknown") return undefined;
  // The program of the previous process does not know this one's answers.
  if (!space.isInPlace && result.kind === "works") return undefined;
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
export function adaptKernel(serving: Serving, capture: Capture, { kernelAnswers }: KernelTierParts): void {
  const { kernel } = serving;
  if (capture === serving.capture || kernelAnswers === undefined) return;
  if (capture !== CONTAINER_CAPTURE) {
    if (kernel.isMeant) return;
    withdrawKernel(serving, ONLY_CONTAINERS);
    kernel.isMeant = true;
  } else if (kernel.reason === ONLY_CONTAINERS) {
    Object.assign(kernel, { isMeant: false, reason: NOT_PROBED });
    kernel.retry.forget();
  }
}

/** The rules are about to lead past it. Packets that have passed the old ones still find the program. */
function withdrawKernel({ kernel, endpoint }: Serving, reason: string): void {
  const { space } = kernel;
  endpoint.setMemory(undefined);
  space?.forget();
  Object.assign(kernel, { space: undefined, isTrial: false, reason });
  setTimeout(() => space?.close(), LIMITS.drainQuietMs).unref();
}
