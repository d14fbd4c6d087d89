/**
 * PolicyLog: what policies have refused, or would have, as programs read it.
 */
import type { PolicyRefusal } from "../../api/policies.ts";
import { typeName } from "../../base/dns/record-type.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import type { LoggedRefusal } from "../../policy/book/refusal-log.ts";
import { namedContainer } from "../containers/find-container.ts";

export function refusalReport(
  { number, containerId, name, type, refusal, count, firstMs, lastMs }: LoggedRefusal,
  facts: ReadonlyMap<string, ContainerFact>,
): PolicyRefusal {
  const fact = facts.get(containerId);
  const { project, service } = fact === undefined ? { project: null, service: null } : namedContainer(fact);
  const { policy, reason, isEnforced, text } = refusal;
  return {
    number,
    time: new Date(firstMs).toISOString(),
    last: new Date(lastMs).toISOString(),
    count,
    container: fact?.name ?? containerId.slice(0, 12),
    containerId,
    project,
    service,
    name,
    type: typeName(type),
    verdict: isEnforced ? "refused" : "would-refuse",
    policy: policy.name,
    mode: policy.mode,
    reason,
    because: text,
  };
}
