/**
 * Assignment: the policies of one namespace, and what is wrong with them. Containers that share a namespace share its policies, and
 * of several policies each must allow a name: the stricter one wins, whichever it is.
 */
import { shortened } from "../../base/lib/shortened.ts";
import { CompiledPolicy } from "../judge/compiled-policy.ts";
import { POLICY_DEFAULTS } from "../model/policy-defaults.ts";
import { POLICY_LABEL, type Policy, isPolicyName } from "../model/policy.ts";
import { type PolicySubject, chosenBy } from "./policy-subject.ts";

export interface Assignment {
  /** None for a namespace without a policy. */
  readonly policies: readonly CompiledPolicy[];
  /** Why it has each, in words. */
  readonly by: readonly string[];
  /** For the operator to see to. */
  readonly problems: readonly string[];
}

const NOTHING: Assignment = { policies: [], by: [], problems: [] };
const NAME_SHOWN_MAX = 63;
/** What a container has until its policies are known. */
const UNDESCRIBED = "not-described-yet";

/** `subjects` share a namespace. `undefinedOf` stands for a policy that a label chooses and nobody has defined. */
export function assignmentOf(
  subjects: Iterable<PolicySubject>,
  policies: readonly CompiledPolicy[],
  undefinedOf: (name: string) => CompiledPolicy,
): Assignment {
  const found = new Map<CompiledPolicy, string>();
  const problems: string[] = [];
  for (const subject of subjects) {
    if (subject.isUndescribed === true) {
      found.set(undefinedOf(UNDESCRIBED), `${subject.name} is not described yet`);
      problems.push(
        `Docker takes long to describe ${subject.name}, or fails to: until its policies are known, nothing that it asks is forwarded`,
      );
    }
    for (const compiled of policies) {
      const by = chosenBy(subject, compiled.policy);
      if (by !== undefined && !found.has(compiled)) found.set(compiled, `${by} of ${subject.name}`);
    }
    const chosen = subject.label(POLICY_LABEL)?.trim();
    if (chosen === undefined || policies.some(({ policy }) => policy.name === chosen && policy.isLeased !== true))
      continue;
    found.set(undefinedOf(chosen), `label ${POLICY_LABEL} of ${subject.name}`);
    const shown = shortened(chosen, NAME_SHOWN_MAX);
    problems.push(
      `the label ${POLICY_LABEL}="${shown}" of ${subject.name} chooses a policy that the settings do not define: until they do, ` +
        "no name of it is forwarded",
    );
  }
  if (found.size === 0) return NOTHING;
  if (found.size > 1) {
    const each = [...found].map(([{ policy }, by]) => `${policy.name} by ${by} (${policy.where})`);
    problems.push(`it has ${found.size} policies, so a name must be allowed by each: ${each.join(", ")}`);
  }
  return { policies: [...found.keys()], by: [...found.values()], problems };
}

/** It allows nothing but what containers resolve of each other: whoever chose a policy wanted to be confined. */
export function undefinedPolicy(name: string): CompiledPolicy {
  const policy: Policy = {
    ...POLICY_DEFAULTS,
    // What a label says goes into logs and metrics.
    name: isPolicyName(name) ? name : "invalid",
    where: `label ${POLICY_LABEL}`,
    file: `label ${POLICY_LABEL}`,
    scopes: [],
    mode: "enforce",
    allow: [],
    deny: [],
  };
  return new CompiledPolicy(policy, true);
}

export function isSameAssignment(one: Assignment, other: Assignment): boolean {
  return (
    one.policies.length === other.policies.length &&
    one.policies.every((each, index) => each === other.policies[index]) &&
    one.by.join("\n") === other.by.join("\n") &&
    one.problems.join("\n") === other.problems.join("\n")
  );
}
