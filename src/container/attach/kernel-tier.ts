/**
 * KernelTier: plain queries of one namespace answered by a program at its lo. The rules then lead UDP past connection
 * tracking, and the program writes our port into what it does not answer. A probe decides whether that works in this
 * namespace: a firewall inside may drop packets that are not tracked. Until it has succeeded, only probes go there.
 * Where it does not, the process answers, by the rules that translate addresses.
 */
import { Fault, reasonOf } from "../../base/lib/fault.ts";
import type { AnsweredByReport } from "../../base/model/answered-by.ts";
import type { KernelAnswers } from "../../kernel/answers/kernel-answers.ts";
import type { KernelSpace } from "../../kernel/answers/kernel-space.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import { LIMITS } from "../../base/limits.ts";
import { NO_JITTER, backoffMs } from "../../base/lib/backoff.ts";
import { CONTAINER_CAPTURE, DOCKER_RESOLVER, type Capture } from "../capture/capture.ts";
import type { NamespaceSockets } from "../namespace/sockets.ts";

/** The answers of one namespace in the kernel; or why there are none, if they are wanted. */
export interface KernelTier {
  space: KernelSpace | undefined;
  /** Until the program has proved itself, only probes depend on it. */
  isTrial: boolean;
  reason: string | undefined;
  /** Nothing has failed. */
  isMeant: boolean;
  /** When it is tried again, if it has failed. */
  readonly retry: KernelRetry;
}

export interface KernelTierParts {
  readonly kernelAnswers?: KernelAnswers | undefined;
  /** Why there are none on this machine, if they are wanted. */
  readonly noKernelAnswers?: string | undefined;
}

export const NOT_PROBED = "not probed yet";
export const ONLY_CONTAINERS = `only queries to ${DOCKER_RESOLVER} in a container are answered by the kernel`;

/** The namespace that it is for. */
interface TierPlace {
  readonly capture: Capture;
  readonly pairs: readonly NamespaceSockets[];
  /** That of the process's own queries. */
  readonly mark: number;
  /** Why not here. */
  readonly notByKernel: string | undefined;
}

/**
 * As it begins: the process answers, and the program is attached when it is this namespace's turn. Where the previous
 * process has left a program, it goes on until this one's takes its place.
 */
export function newKernelTier(parts: KernelTierParts, place: TierPlace, inheritedLink?: number): KernelTier {
  const tier = { space: undefined, isTrial: false, ...whyNotYet(parts, place), retry: new KernelRetry() };
  const [pair] = place.pairs;
  if (inheritedLink === undefined || pair === undefined || !isTierDue(tier, parts)) return tier;
  let space: KernelSpace | undefined;
  try {
    space = openSpace(parts, place.mark);
    space.adopt(inheritedLink);
    space.serve(pair.listening.udpPort);
    return { ...tier, space, reason: undefined };
  } catch (error) {
    failTier(tier, space, error);
    return tier;
  }
}

/** Whether the program is to be attached when it is the namespace's turn. */
export function isTierDue(tier: KernelTier, { kernelAnswers }: KernelTierParts): boolean {
  return kernelAnswers !== undefined && tier.space === undefined && !tier.isMeant && tier.retry.isDue();
}

/**
 * Attaches the program in the namespace, on trial; returns whether it is there. `portNow` is of the process's socket
 * when that is done; undefined if the namespace is no longer served.
 */
export async function openKernelTier(
  tier: KernelTier,
  parts: KernelTierParts & { readonly netns: NetNamespace; readonly mark: number },
  portNow: () => number | undefined,
): Promise<boolean> {
  let space: KernelSpace | undefined;
  try {
    space = openSpace(parts, parts.mark);
    await space.attachIn(parts.netns.fd);
    const port = tier.isMeant ? undefined : portNow();
    if (port === undefined) {
      space.close();
      return false;
    }
    space.serve(port);
    Object.assign(tier, { space, isTrial: true, reason: undefined });
    return true;
  } catch (error) {
    failTier(tier, space, error);
    return false;
  }
}

function whyNotYet(
  { kernelAnswers, noKernelAnswers }: KernelTierParts,
  { capture, pairs, notByKernel }: TierPlace,
): Pick<KernelTier, "reason" | "isMeant"> {
  if (kernelAnswers === undefined) return { reason: noKernelAnswers, isMeant: false };
  if (notByKernel !== undefined) return { reason: notByKernel, isMeant: true };
  if (capture !== CONTAINER_CAPTURE || pairs.length === 0) return { reason: ONLY_CONTAINERS, isMeant: true };
  return { reason: NOT_PROBED, isMeant: false };
}

function openSpace({ kernelAnswers }: KernelTierParts, mark: number): KernelSpace {
  const space = kernelAnswers?.open(mark);
  if (space === undefined) {
    throw new Fault("KERNEL_FULL", "the kernel already answers for as many namespaces as there may be", {
      remedy: "Nothing is lost but speed: the process answers for the others.",
    });
  }
  return space;
}

function failTier(tier: KernelTier, space: KernelSpace | undefined, error: unknown): void {
  space?.close();
  tier.retry.fail();
  tier.reason = reasonOf(error);
}

/** Ends it; the rules lead nothing to the program any more. */
export function closeKernelTier(tier: KernelTier, reason?: string): void {
  tier.space?.close();
  tier.space = undefined;
  tier.reason = reason;
}

/** Undefined where nothing else than the process is wanted. */
export function answeredBy({ space, isTrial, reason, isMeant }: KernelTier): AnsweredByReport | undefined {
  if (space !== undefined && !isTrial) return { by: "kernel" };
  if (space !== undefined || reason === NOT_PROBED) return { by: "process", reason: NOT_PROBED, isPending: true };
  return reason === undefined ? undefined : { by: "process", reason, ...(isMeant && { isMeant }) };
}

/**
 * When a namespace in which answers of the kernel have not arrived is tried again. Each try costs two changes
 * of rules, so the pauses grow. They are shorter after a change of the container's rules, which may have removed the cause;
 * but they grow, because a container may change its rules as often as it likes.
 */
export class KernelRetry {
  #failures = 0;
  #failedMs = Number.NEGATIVE_INFINITY;
  #isHurried = false;

  /** It does not work now. Failures count until there has been none for a long time. */
  fail(nowMs = performance.now()): void {
    const isFirst = nowMs - this.#failedMs > 2 * LIMITS.kernelRetryLastMs;
    this.#failures = isFirst ? 1 : this.#failures + 1;
    this.#failedMs = nowMs;
    this.#isHurried = false;
  }

  /** Something has changed in the namespace. */
  hurry(): void {
    this.#isHurried = true;
  }

  /** An operator wants to know: at the next verification. */
  forget(): void {
    this.#failures = 0;
  }

  /** Whether to try at this verification. */
  isDue(nowMs = performance.now()): boolean {
    // After the first failure a change is followed at once.
    const steps = this.#isHurried ? this.#failures - 2 : this.#failures - 1;
    if (steps < 0) return true;
    const firstMs = this.#isHurried ? LIMITS.kernelRetryAfterChangeMs : LIMITS.kernelRetryFirstMs;
    return nowMs - this.#failedMs >= backoffMs(steps, firstMs, LIMITS.kernelRetryLastMs, NO_JITTER);
  }
}
