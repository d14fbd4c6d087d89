/**
 * Policy check: whether the policy of a container is what its operator meant, according to a running dns11: one that is not served
 * has none in effect, a label may choose a policy that nobody has defined, and of several policies each must allow a name.
 */
import type { ControlClient } from "../../api/control-client.ts";
import type { PoliciesReport } from "../../api/policies.ts";
import { type Finding, finding } from "../../base/model/finding.ts";

const CORRECT =
  "Correct the settings or the labels: `dns11 policy` lists both. `dns11 reload` reads the settings again.";

/** Undefined if they are unknown. */
export async function readPolicies(client: ControlClient): Promise<PoliciesReport | undefined> {
  try {
    return await client.policies();
  } catch {
    // An older dns11: the check is left out.
    return undefined;
  }
}

/** Of containers that are not inspected one by one, because they are not served. */
export function otherPolicyFindings(report: PoliciesReport | undefined, inspected: ReadonlySet<string>): Finding[] {
  return (report?.containers ?? [])
    .filter(({ containerId }) => !inspected.has(containerId))
    .flatMap(({ container, problems }) =>
      problems.map((problem) => finding("policy", "problem", `${container}: ${problem}`, CORRECT)),
    );
}

/** Finds nothing for a container without a policy. */
export function policyFindings(report: PoliciesReport | undefined, id: string): Finding[] {
  const container = report?.containers.find(({ containerId }) => containerId === id);
  if (container === undefined) return [];
  const { policies, problems } = container;
  if (problems.length > 0) return problems.map((problem) => finding("policy", "problem", problem, CORRECT));
  return policies.map(({ name, mode, by, where }) =>
    finding("policy", "ok", `${name} by ${by}, mode ${mode} (${where})`),
  );
}
