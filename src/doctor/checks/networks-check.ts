/**
 * Networks check: networks that keep their containers apart. Names there lead to addresses that nobody can connect to, which looks
 * like a fault of DNS.
 */
import { type Finding, finding } from "../../base/model/finding.ts";
import { type ContainerFact, type NetworkFact, isUserDefined } from "../../container/facts/fact.ts";
import type { ControlClient } from "../../api/control-client.ts";
import type { PoliciesReport } from "../../api/policies.ts";

const NETWORKS_MAX = 16;
const MEMBERS_MAX = 256;
const SHOWN = 4;
const REMEDY =
  "Connect those that are to talk to each other to another network, too, or create the network again without that option.";

type NetworkOf = (id: string) => NetworkFact | undefined;

/** Finds nothing on a network whose containers all share another one. */
export function networkFindings(facts: readonly ContainerFact[], networkOf: NetworkOf): Finding[] {
  const members = new Map<NetworkFact, ContainerFact[]>();
  for (const fact of facts) {
    for (const { networkId } of fact.endpoints) {
      const network = networkOf(networkId);
      if (network?.apartBy === undefined || !isUserDefined(network.name)) continue;
      members.set(network, [...(members.get(network) ?? []), fact]);
    }
  }
  return [...members].slice(0, NETWORKS_MAX).flatMap(([network, all]) => {
    const alone = separated(all.slice(0, MEMBERS_MAX), networkOf);
    if (alone.length === 0) return [];
    const names = alone.slice(0, SHOWN).map(({ name }) => name);
    const count = all.length > MEMBERS_MAX ? "" : `${alone.length - SHOWN} `;
    const more = alone.length > SHOWN ? ` and ${count}more` : "";
    const what = `containers on "${network.name}" resolve each other and cannot connect (${network.apartBy ?? ""}): ${names.join(", ")}${more}`;
    return [finding("networks", "warning", what, REMEDY)];
  });
}

/** Those of which another one is on no other network that they share. */
function separated(all: readonly ContainerFact[], networkOf: NetworkOf): ContainerFact[] {
  const open = all.map(
    ({ endpoints }) =>
      new Set(endpoints.flatMap(({ networkId: id }) => (networkOf(id)?.apartBy === undefined ? [id] : []))),
  );
  const [first] = open;
  // Hundreds on one network are compared with all others only where no network has them all.
  if (first !== undefined && [...first].some((id) => open.every((each) => each.has(id)))) return [];
  return all.filter((_, a) => open.some((other, b) => a !== b && ![...(open[a] ?? [])].some((id) => other.has(id))));
}

const CORRECT =
  "Correct the settings or the labels: `dns11 policy` lists both. `dns11 reload` reads the settings again.";

/**
 * Policy check: whether the policy of a container is what its operator meant, according to a running dns11: one that is not served
 * has none in effect, a label may choose a policy that nobody has defined, and of several policies each must allow a name.
 * Undefined if they are unknown.
 */
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
