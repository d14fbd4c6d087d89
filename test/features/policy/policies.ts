// Policies as tests write them: rules as text, everything else as by default.

import { readRule } from "../../../src/features/policy/model/policy-rule.ts";
import { type Policy, POLICY_DEFAULTS } from "../../../src/features/policy/model/policy.ts";

export interface WrittenPolicy extends Partial<Omit<Policy, "allow" | "deny">> {
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
}

export function policyOf({ allow = [], deny = [], ...more }: WrittenPolicy = {}): Policy {
  const rules = (texts: readonly string[], first: number): Policy["allow"] =>
    texts.map((text, index) => ({ ...readRule(text), line: first + index }));
  return {
    ...POLICY_DEFAULTS,
    name: "agents",
    where: "f:2:3",
    file: "f",
    scopes: [],
    mode: "enforce",
    ...more,
    allow: rules(allow, 10),
    deny: rules(deny, 100),
  };
}
