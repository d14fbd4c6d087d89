/**
 * NameTraits: the TTL of a container's names, the order of its addresses, the name that they point to, and whether its health
 * leaves it out, from its labels and the settings. They are compiled into the names when the container joins, so that a query
 * costs nothing more.
 */
import { type HealthPolicy, isLeftOut } from "../../base/model/health-policy.ts";
import { NAME_CHOICES_DEFAULTS, type PtrForm } from "../../base/model/name-choices.ts";
import type { NameSettings } from "./source/name-settings.ts";
import type { NameTraits } from "./source/name-source.ts";
import type { ContainerFact } from "../facts/fact.ts";
import { labelHealth, labelOrder, labelPtr, labelTtl } from "../facts/label-choices.ts";
import type { Labels } from "../facts/labels.ts";

/** Where the settings say nothing of health or choices, labels do not count either. */
export function traitsOf(
  fact: ContainerFact,
  labels: Labels,
  { health, choices }: Pick<NameSettings, "health" | "choices">,
): NameTraits {
  const isLastResort = health !== undefined && isUnhealthy(fact, labels, health);
  if (choices === undefined) return { isLastResort };
  return {
    isLastResort,
    ttlSeconds: labelTtl(labels).policy,
    isSorted: labelOrder(labels, choices.order).policy === "sorted",
    pointer: pointerOf(fact, labelPtr(labels, choices.ptr).policy),
  };
}

function isUnhealthy(fact: ContainerFact, labels: Labels, policy: HealthPolicy): boolean {
  return isLeftOut(fact.health, labelHealth(labels, policy).policy);
}

/** Undefined for NAME.NETWORK, also of a container that lacks what the form needs. */
function pointerOf({ hostname, domainName }: ContainerFact, form: PtrForm): string | undefined {
  if (form === NAME_CHOICES_DEFAULTS.ptr || hostname === "") return undefined;
  if (form === "hostname" || hostname.includes(".")) return hostname;
  return domainName === "" ? undefined : `${hostname}.${domainName}`;
}
