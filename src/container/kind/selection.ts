/**
 * Selection: which containers are KIND nodes. A cluster's load balancer carries the same labels and is none: it has no
 * pods, and what it asks it asks at 127.0.0.11 as any container does.
 */
import type { NodeFilter } from "../../base/model/kind-policy.ts";
import { LABEL_DEFAULTS, type LabelPolicy } from "../../base/model/label-policy.ts";
import type { ContainerFact } from "../registry/fact.ts";
import { type SplitLabels, effectiveLabels, ignoredLabelWarning } from "../registry/labels.ts";

/** Every container of a KIND cluster has it; its value is the cluster's name. */
const CLUSTER_LABEL = "io.x-k8s.kind.cluster";
/** Where a container itself says whether it is a node. */
const OWN_LABEL = "io.dns11.kind";
/** Labels whose values here say that a container only leads to a cluster. */
const IN_FRONT: readonly (readonly [string, string])[] = [
  ["io.x-k8s.kind.role", "external-load-balancer"],
  ["k3d.role", "loadbalancer"],
];

type NodeCandidate = Pick<ContainerFact, "name"> & SplitLabels;

export function isNode(
  fact: NodeCandidate,
  filters: readonly NodeFilter[],
  policy: LabelPolicy = LABEL_DEFAULTS,
): boolean {
  return isNodeBy(fact.name, effectiveLabels(fact, policy), filters);
}

/** What an image says of that and may not, for whoever wonders why its containers are treated otherwise. */
export function ignoredNodeLabel(
  fact: NodeCandidate,
  filters: readonly NodeFilter[],
  policy: LabelPolicy,
): string | undefined {
  const isWished = isNode(fact, filters, { ...policy, trustsImages: true });
  if (isWished === isNode(fact, filters, policy)) return undefined;
  const named = filters.flatMap((filter) => (filter.kind === "label" ? [filter.key] : []));
  return [OWN_LABEL, ...IN_FRONT.map(([key]) => key), CLUSTER_LABEL, ...named]
    .map((key) => ignoredLabelWarning(key, fact, policy))
    .find((text) => text !== undefined);
}

function isNodeBy(name: string, labels: Readonly<Record<string, string>>, filters: readonly NodeFilter[]): boolean {
  if (filters.length === 0) return false;
  const own = labels[OWN_LABEL]?.trim().toLowerCase();
  if (own === "true" || own === "false") return own === "true";
  if (IN_FRONT.some(([key, value]) => labels[key] === value)) return false;
  return filters.some((filter) => selects(filter, name, labels));
}

function selects(filter: NodeFilter, name: string, labels: Readonly<Record<string, string>>): boolean {
  switch (filter.kind) {
    case "auto":
      return Object.hasOwn(labels, CLUSTER_LABEL);
    case "label":
      return Object.hasOwn(labels, filter.key) && (filter.value === undefined || labels[filter.key] === filter.value);
    case "name":
      return patternOf(filter.pattern).test(name);
  }
}

/** `*` stands for anything, everything else for itself. */
function patternOf(pattern: string): RegExp {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s");
}
