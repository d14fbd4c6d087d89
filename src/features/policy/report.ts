import type { PoliciesReport } from "../../api/policies.ts";
import { type Finding, findingsOf } from "../../base/model/finding.ts";
import type { CheckedContainer, CheckedContainers, CheckedMachine } from "../contract.ts";

export const checks = {
  policy: {
    title: "policy",
    examines:
      "whether the [policy](policy.md) of a container holds: it is not served, has several, or chooses one that nobody has defined",
  },
};
const finding = findingsOf(checks);

const CORRECT =
  "Correct the settings or the labels: `dns11 policy` lists both. `dns11 reload` reads the settings again.";

type Machine = Pick<CheckedMachine, "status" | "client">;

/** One request is enough for all containers. */
const reports = new WeakMap<Machine, Promise<PoliciesReport | undefined>>();

/** Of containers that are not checked one by one, because they are not served. */
export async function containersFindings(
  { checked }: Pick<CheckedContainers, "checked">,
  machine: Machine,
): Promise<Finding[]> {
  if (checked === undefined) return [];
  const report = await reportOf(machine);
  return (report?.containers ?? [])
    .filter(({ containerId }) => !checked.has(containerId))
    .flatMap(({ container, problems }) =>
      problems.map((problem) => finding("policy", "problem", `${container}: ${problem}`, CORRECT)),
    );
}

/**
 * Whether the policy of a container is what its operator meant: one that is not served has none in effect, a label may choose a policy
 * that nobody has defined, and of several policies each must allow a name.
 */
export async function containerFindings(
  { fact }: Pick<CheckedContainer, "fact">,
  machine: Machine,
): Promise<Finding[]> {
  const report = await reportOf(machine);
  const container = report?.containers.find(({ containerId }) => containerId === fact.id);
  if (container === undefined) return [];
  const { policies, problems } = container;
  if (problems.length > 0) return problems.map((problem) => finding("policy", "problem", problem, CORRECT));
  return policies.map(({ name, mode, by, where }) =>
    finding("policy", "ok", `${name} by ${by}, mode ${mode} (${where})`),
  );
}

async function reportOf(machine: Machine): Promise<PoliciesReport | undefined> {
  // An older dns11 does not know the request.
  const known = reports.get(machine) ?? (machine.status && machine.client.policies().catch(() => undefined));
  if (known !== undefined) reports.set(machine, known);
  return await known;
}
