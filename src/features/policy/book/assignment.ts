/**
 * Assignment: the policies of one namespace, and what is wrong with them. Containers that share a namespace share its policies, and
 * of several policies each must allow a name: the stricter one wins, whichever it is.
 */
import { shortened } from "../../../base/lib/text.ts";
import { CompiledPolicy } from "../judge/compiled-policy.ts";
import { POLICY_LABEL, type Policy, isPolicyName, POLICY_DEFAULTS, type PolicyScope } from "../model/policy.ts";

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

/** A container as policies choose it. */
export interface PolicySubject {
  readonly id: string;
  readonly name: string;
  /** The container whose namespace it uses: itself, usually. */
  readonly ownerId: string;
  /** The engine has not described it yet, so it might have any policy. */
  readonly isUndescribed?: boolean;
  /** Names. */
  readonly networks: readonly string[];
  readonly project: string | null;
  readonly service: string | null;
  /** The value of a label, its image's among them: a policy gives nothing that one could want. */
  readonly label: (key: string) => string | undefined;
}

/** Why a container has a policy, in words; undefined if it has not. */
export function chosenBy(subject: PolicySubject, { name, scopes, isLeased }: Policy): string | undefined {
  if (isLeased !== true && subject.label(POLICY_LABEL)?.trim() === name) return `label ${POLICY_LABEL}`;
  const scope = scopes.find((each) => matches(subject, each));
  if (scope === undefined) return undefined;
  return scope.kind === "label" ? `label ${scope.key}` : `${scope.kind} ${scope.name}`;
}

function matches({ id, name, networks, project, service, label }: PolicySubject, scope: PolicyScope): boolean {
  switch (scope.kind) {
    case "network":
      return networks.includes(scope.name);
    case "container":
      return name === scope.name || id === scope.name;
    case "project":
      return project === scope.name;
    case "service":
      return service === scope.name;
    case "label": {
      const value = label(scope.key);
      return value !== undefined && (scope.value === undefined || value === scope.value);
    }
  }
}
