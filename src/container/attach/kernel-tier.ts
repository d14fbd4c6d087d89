/**
 * KernelTier: plain queries of one namespace answered by a program at its lo. The rules then lead UDP past connection
 * tracking, and the program writes our port into what it does not answer. A probe decides whether that works in this
 * namespace: a firewall inside may drop packets that are not tracked. Where it does not, the process answers, by the
 * rules that translate addresses.
 */
import { reasonOf } from "../../base/lib/fault.ts";
import type { AnsweredByReport } from "../../base/model/answered-by.ts";
import type { KernelAnswers, KernelSpace } from "../../kernel/answers/kernel-answers.ts";
import { CONTAINER_CAPTURE, DOCKER_RESOLVER, type Capture } from "../capture/capture.ts";
import type { NamespaceSockets } from "../namespace/sockets.ts";

/** The answers of one namespace in the kernel; or why there are none, if they are wanted. */
export interface KernelTier {
  space: KernelSpace | undefined;
  reason: string | undefined;
}

export interface KernelTierParts {
  readonly kernelAnswers?: KernelAnswers | undefined;
  /** Why there are none on this machine, if they are wanted. */
  readonly noKernelAnswers?: string | undefined;
}

/** Attaches the program. Call inside the namespace, before the rules lead anything to it. */
export function openKernelTier(
  { kernelAnswers, noKernelAnswers }: KernelTierParts,
  capture: Capture,
  [pair]: readonly NamespaceSockets[],
): KernelTier {
  if (kernelAnswers === undefined) return { space: undefined, reason: noKernelAnswers };
  if (capture !== CONTAINER_CAPTURE || pair === undefined) {
    return { space: undefined, reason: `only queries to ${DOCKER_RESOLVER} are answered by the kernel` };
  }
  let space: KernelSpace | undefined;
  try {
    space = kernelAnswers.open();
    if (space === undefined)
      return { space, reason: "the kernel already answers for as many namespaces as there may be" };
    space.attach();
    space.serve(pair.listening.udpPort);
    return { space, reason: undefined };
  } catch (error) {
    space?.close();
    return { space: undefined, reason: reasonOf(error) };
  }
}

/** Ends it; the rules lead nothing to the program any more. */
export function closeKernelTier(tier: KernelTier, reason?: string): void {
  tier.space?.close();
  tier.space = undefined;
  tier.reason = reason;
}

/** Undefined where nothing else than the process is wanted. */
export function answeredBy({ space, reason }: KernelTier): AnsweredByReport | undefined {
  if (space !== undefined) return { by: "kernel" };
  return reason === undefined ? undefined : { by: "process", reason };
}
