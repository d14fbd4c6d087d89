/**
 * AttachmentState: whether one namespace is attached, and if not, why. The ways to leave a namespace, and their parts:
 *
 *   drain      new queries go to Docker's resolver, those in flight are still answered; `close` follows
 *   close      rules, sockets and everything else are removed at once
 *   withdraw   new queries are about to go to Docker's resolver: the attach mode reverts what it announced, such as a
 *              node's resolv.conf
 *   undo       nothing of ours listens there any more: the attach mode reverts what it prepared in the namespace
 *   pause      no new queries, for a takeover; rules and sockets stay
 *   abandon    the takeover is complete: the new process serves, so rules and sockets stay
 *   leave      Docker's resolver must not answer: the keeper refuses all queries, with the same rules and sockets
 */
import { Fault, codeOf } from "../../base/lib/fault.ts";
import type { FailureCode } from "../../base/model/finding.ts";
import { SystemFault } from "../../kernel/libc.ts";
import { LOCKED_REASON, MACHINE_LOCKED_REASON, RULES_LOCKED } from "../namespace/rules-locked.ts";

export type AttachmentState =
  | { readonly kind: "opening" }
  | { readonly kind: "verifying"; readonly sinceMs: number }
  | { readonly kind: "attached"; readonly sinceMs: number; readonly verifiedMs: number }
  | {
      readonly kind: "failed";
      readonly code: string;
      readonly reason: string;
      readonly culprits: readonly string[];
      readonly atMs: number;
      /** A policy is enforced, so sockets and rules stay: nobody else answers. */
      readonly isHeld: boolean;
    }
  | { readonly kind: "closed" };

/** Why a change has waited too long: for the lock of the namespace itself, or for one that changes of all namespaces take. */
export function lockedReason(isOwn: boolean): string {
  return `${isOwn ? LOCKED_REASON : MACHINE_LOCKED_REASON}; dns11 goes on when it is free`;
}

export function lockedState(reason: string, isHeld: boolean): AttachmentState {
  return { kind: "failed", code: RULES_LOCKED, reason, culprits: [], atMs: Date.now(), isHeld };
}

/** Why it failed, with what probably causes it. */
export function failureText({
  reason,
  culprits = [],
}: {
  readonly reason: string;
  readonly culprits?: readonly string[] | undefined;
}): string {
  return [reason, ...culprits].join(": ");
}

/** The status code of a failure; the kernel's error is part of the reason. */
export function failureCode(error: unknown, otherwise: FailureCode): string {
  if (codeOf(error) === "EMFILE" || codeOf(error) === "ENFILE") return "NO_DESCRIPTORS" satisfies FailureCode;
  return error instanceof Fault && !(error instanceof SystemFault) ? error.code : otherwise;
}
