/**
 * Refusal: why a policy refuses a query, or would if it were enforced. There is one for each rule and reason, whatever was
 * queried, so that a container cannot make up any number of them.
 */
import type { Policy } from "../model/policy.ts";
import { questionsPerMinute } from "./questions.ts";
import type { PolicyRule } from "../model/policy-rule.ts";

export type RefusalReason =
  /** A rule of `deny`. */
  | "denied"
  /** No rule of `allow`. */
  | "not-allowed"
  /** A wildcard allows the name, but not this record type. */
  | "type"
  /** A wildcard allows the name, but not what stands for it: it is too long. */
  | "length"
  /** Too many new names under a wildcard in a minute. */
  | "new-names"
  /** Too many questions that leave the machine in a minute. */
  | "questions"
  /** The name of another container, with `peers: deny`. */
  | "peers"
  /** The machine itself, with `host: deny`. */
  | "host"
  /** The answer has an address of the machine itself, with `host: deny`. */
  | "host-address"
  /** The answer has an address that is not public, with `private: deny`. */
  | "private"
  /** The kernel cannot hold the container to it. */
  | "not-enforceable"
  /** The container chooses a policy that the settings do not have. */
  | "undefined-policy";

export interface Refusal {
  readonly policy: Policy;
  readonly reason: RefusalReason;
  /** Undefined where the absence of one is the reason, or a choice of the policy. */
  readonly rule: PolicyRule | undefined;
  /** Otherwise it is only recorded. */
  readonly isEnforced: boolean;
  /** For people, with file and line. */
  readonly text: string;
}

/** Why a policy that enforces addresses cannot do so: then nothing is resolved. */
export function hindranceOf(policy: Policy, why: string): Refusal {
  const text = `policy ${policy.name}: not enforceable: ${why} (${policy.where})`;
  return { policy, reason: "not-enforceable", rule: undefined, isEnforced: policy.mode === "enforce", text };
}

export function refusalOf(
  policy: Policy,
  reason: Exclude<RefusalReason, "not-enforceable">,
  rule?: PolicyRule,
): Refusal {
  const isEnforced = policy.mode === "enforce";
  return { policy, reason, rule, isEnforced, text: `policy ${policy.name}: ${sentence(policy, reason, rule)}` };
}

function sentence(
  policy: Policy,
  reason: Exclude<RefusalReason, "not-enforceable">,
  rule: PolicyRule | undefined,
): string {
  const place = rule === undefined ? policy.where : `${policy.file}:${rule.line}`;
  const text = rule?.text ?? "";
  switch (reason) {
    case "denied":
      return `deny ${text} (${place})`;
    case "not-allowed":
      return `no rule allows it (${place})`;
    case "type":
      return `${text} does not allow this record type (${place})`;
    case "length":
      return `${text} does not allow so long a name (${place})`;
    case "new-names":
      return `more than ${policy.newNamesPerMinute} new names in a minute under ${text} (${place})`;
    case "questions":
      return `more than ${questionsPerMinute(policy, rule)} questions in a minute leave the machine${rule === undefined ? "" : ` under ${text}`} (${place})`;
    case "peers":
      return `peers: ${policy.peers} (${place})`;
    case "host":
      return `host: ${policy.host} (${place})`;
    case "host-address":
      return `host: ${policy.host}, and the answer has an address of this machine (${place})`;
    case "private":
      return `private: ${policy.private}, and the answer has such an address (${place})`;
    case "undefined-policy":
      return `the settings define no such policy, which ${place} chooses`;
  }
}
