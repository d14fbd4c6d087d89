/**
 * KernelTier: plain queries of one namespace answered by a program at its lo. The rules then lead UDP past connection
 * tracking, and the program writes our port into what it does not answer. A probe decides whether that works in this
 * namespace: a firewall inside may drop packets that are not tracked. Until it has succeeded, only probes go there.
 * Where it does not, the process answers, by the rules that translate addresses.
 */
import { reasonOf } from "../../base/lib/fault.ts";
import type { AnsweredByReport } from "../../base/model/answered-by.ts";
import type { KernelAnswers, KernelSpace } from "../../kernel/answers/kernel-answers.ts";
import { CONTAINER_CAPTURE, DOCKER_RESOLVER, type Capture } from "../capture/capture.ts";
import type { NamespaceSockets } from "../namespace/sockets.ts";
import { KernelRetry } from "./kernel-retry.ts";

/** The answers of one namespace in the kernel; or why there are none, if they are wanted. */
export interface KernelTier {
  space: KernelSpace | undefined;
  /** Only probes depend on it so far. */
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

export const ONLY_CONTAINERS = `only queries to ${DOCKER_RESOLVER} in a container are answered by the kernel`;

/** What opening it gives, and what changes with each try. */
type OpenedTier = Omit<KernelTier, "retry">;

/** The namespace in which it opens. */
interface TierPlace {
  readonly capture: Capture;
  readonly pairs: readonly NamespaceSockets[];
  /** Why not here. */
  readonly notByKernel: string | undefined;
  /** The process before us has answered in this way here. */
  readonly hasWorked: boolean;
}

/** Attaches the program. Call inside the namespace, before the rules lead anything to it. */
export function openKernelTier(parts: KernelTierParts, place: TierPlace): KernelTier {
  const retry = new KernelRetry();
  return { ...opened(parts, place, retry), retry };
}

/** The same where it has failed, once the pause is over. Returns whether there is a program now, on trial. */
export function reopenKernelTier(tier: KernelTier, parts: KernelTierParts, place: TierPlace): boolean {
  Object.assign(tier, opened(parts, place, tier.retry));
  return tier.space !== undefined;
}

/** Whether that is to be tried now. */
export function isTierDue(tier: KernelTier, { kernelAnswers }: KernelTierParts): boolean {
  return kernelAnswers !== undefined && tier.space === undefined && !tier.isMeant && tier.retry.isDue();
}

function opened(
  { kernelAnswers, noKernelAnswers }: KernelTierParts,
  { capture, pairs: [pair], notByKernel, hasWorked }: TierPlace,
  retry: KernelRetry,
): OpenedTier {
  const without = (reason: string | undefined, isMeant = false): OpenedTier => ({
    space: undefined,
    isTrial: false,
    reason,
    isMeant,
  });
  if (kernelAnswers === undefined) return without(noKernelAnswers);
  if (notByKernel !== undefined) return without(notByKernel, true);
  if (capture !== CONTAINER_CAPTURE || pair === undefined) {
    return without(ONLY_CONTAINERS, true);
  }
  let space: KernelSpace | undefined;
  try {
    space = kernelAnswers.open();
    if (space === undefined) {
      retry.fail();
      return without("the kernel already answers for as many namespaces as there may be");
    }
    space.attach();
    space.serve(pair.listening.udpPort);
    return { space, isTrial: !hasWorked, reason: undefined, isMeant: false };
  } catch (error) {
    space?.close();
    retry.fail();
    return without(reasonOf(error));
  }
}

/** Ends it; the rules lead nothing to the program any more. */
export function closeKernelTier(tier: KernelTier, reason?: string): void {
  tier.space?.close();
  tier.space = undefined;
  tier.reason = reason;
}

/** Undefined where nothing else than the process is wanted. */
export function answeredBy({ space, isTrial, reason, isMeant }: KernelTier): AnsweredByReport | undefined {
  if (space !== undefined) return isTrial ? { by: "process", reason: "not probed yet" } : { by: "kernel" };
  return reason === undefined ? undefined : { by: "process", reason, ...(isMeant && { isMeant }) };
}
