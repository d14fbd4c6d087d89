/**
 * NameTraits: the TTL of a container's names, the order of its addresses, and the name that they point to, from its labels and
 * the settings. They are compiled into the names when the container joins, so that a query costs nothing more.
 */
import { NAME_CHOICES_DEFAULTS, type NameChoices, type PtrForm } from "../../base/model/name-choices.ts";
import type { ContainerFact } from "./fact.ts";
import { labelOrder, labelPtr, labelTtl } from "./label-choices.ts";
import type { Labels } from "./labels.ts";

interface NameTraits {
  readonly ttlSeconds: number | undefined;
  readonly isSorted: boolean;
  readonly pointer: string | undefined;
}

const AS_IN_DOCKER: NameTraits = { ttlSeconds: undefined, isSorted: false, pointer: undefined };

/** `choices` are those of the settings; without any, labels do not count either. */
export function traitsOf(fact: ContainerFact, labels: Labels, choices: NameChoices | undefined): NameTraits {
  if (choices === undefined) return AS_IN_DOCKER;
  return {
    ttlSeconds: labelTtl(labels).policy,
    isSorted: labelOrder(labels, choices.order).policy === "sorted",
    pointer: pointerOf(fact, labelPtr(labels, choices.ptr).policy),
  };
}

/** Undefined for NAME.NETWORK, also of a container that lacks what the form needs. */
function pointerOf({ hostname, domainName }: ContainerFact, form: PtrForm): string | undefined {
  if (form === NAME_CHOICES_DEFAULTS.ptr || hostname === "") return undefined;
  if (form === "hostname" || hostname.includes(".")) return hostname;
  return domainName === "" ? undefined : `${hostname}.${domainName}`;
}
