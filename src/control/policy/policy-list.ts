/**
 * PolicyList: the containers with a policy, and how far each is confined.
 */
import type { ClosedMoment, PoliciesReport, PolicyContainer } from "../../api/policies.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { Assignment } from "../../policy/book/assignment.ts";
import { scopeText } from "../../policy/model/policy.ts";
import { namedContainer, sharedOwner } from "../containers/find-container.ts";
import type { ControlPorts } from "../situation/ports.ts";

type Ports = Pick<ControlPorts, "containers" | "policies">;

const BIRTH: ClosedMoment = {
  isClosed: false,
  because: "Docker's resolver answers a container until dns11 has attached to it, some milliseconds after its start",
};
const DEATH: ClosedMoment = {
  isClosed: false,
  because: "if dns11 ends, Docker's resolver answers again, and forwards every name",
};
const RECORDED: ClosedMoment = { isClosed: false, because: "the policy only records: mode is not enforce" };
const NAMES_ONLY: ClosedMoment = {
  isClosed: false,
  because:
    "only names that are asked of dns11 are filtered (addresses: names): a program that has an address, or asks another server, is not held",
};

export function listPolicies({ containers, policies }: Ports): PoliciesReport {
  const facts = containers.facts;
  return {
    policies: policies.policies.map(({ name, mode, where, scopes, allow, deny }) => ({
      name,
      mode,
      where,
      for: scopes.map((each) => scopeText(each)),
      allow: allow.length,
      deny: deny.length,
    })),
    containers: [...facts.values()].flatMap((fact) => {
      const owner = sharedOwner(facts, fact) ?? fact;
      const assignment = policies.assignmentOf(owner.id);
      return assignment.policies.length === 0 ? [] : [containerOf({ containers, policies }, fact, owner, assignment)];
    }),
  };
}

function containerOf(ports: Ports, fact: ContainerFact, owner: ContainerFact, assignment: Assignment): PolicyContainer {
  const { containers, policies } = ports;
  const { project, service } = namedContainer(fact);
  const isEnforced = assignment.policies.some(({ policy }) => policy.mode === "enforce");
  const [first] = assignment.policies;
  const notServed = notServedReason(containers, owner);
  const unheld: ClosedMoment | undefined =
    notServed === undefined ? undefined : { isClosed: false, because: `dns11 does not serve it: ${notServed}` };
  const moment = (of: ClosedMoment): ClosedMoment => unheld ?? (isEnforced ? of : RECORDED);
  return {
    container: fact.name,
    containerId: fact.id,
    project,
    service,
    policies: assignment.policies.map(({ policy: { name, mode, where } }, index) => ({
      name,
      mode,
      by: assignment.by[index] ?? "",
      where,
    })),
    mode: isEnforced ? "enforce" : (first?.policy.mode ?? "audit"),
    notServed: notServed ?? null,
    ...policies.countsOf(owner.id),
    birth: moment(BIRTH),
    life: moment(NAMES_ONLY),
    death: moment(DEATH),
    grants: policies.grantsOf(owner.id).map(({ text }) => text),
    problems: [
      ...assignment.problems,
      ...(notServed === undefined ? [] : [`dns11 does not serve it, so its policy does nothing: ${notServed}`]),
    ],
  };
}

function notServedReason(
  { decisionOf, attachmentOf }: ControlPorts["containers"],
  { id }: ContainerFact,
): string | undefined {
  const decision = decisionOf(id);
  if (decision?.kind === "skip") return decision.reason;
  const state = attachmentOf(id)?.state;
  return state?.kind === "failed" ? state.reason : undefined;
}
