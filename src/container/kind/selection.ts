/**
 * Selection: which containers are KIND nodes. A cluster's load balancer has the same labels but is not a node: it has no pods,
 * and queries 127.0.0.11 like any container.
 */
import type { NodeFilter } from "../../base/model/kind-policy.ts";
import { LABEL_DEFAULTS, type LabelPolicy } from "../../base/model/label-policy.ts";
import type { ContainerFact } from "../facts/fact.ts";
import { type SplitLabels, effectiveLabels, ignoredLabelWarning } from "../facts/labels.ts";

/** On every container of a KIND cluster; the value is the cluster's name. */
const CLUSTER_LABEL = "io.x-k8s.kind.cluster";
/** Overrides the selection for one container. */
const OVERRIDE_LABEL = "io.dns11.kind";
/** Label values that mark the load balancer of a cluster. */
const LOAD_BALANCER_LABELS: readonly (readonly [string, string])[] = [
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

/** Whether a filter selects it, whatever its other labels say. */
export function isSelected(
  fact: NodeCandidate,
  filters: readonly NodeFilter[],
  policy: LabelPolicy = LABEL_DEFAULTS,
): boolean {
  const labels = effectiveLabels(fact, policy);
  return filters.some((filter) => selects(filter, fact.name, labels));
}

/** A warning about an image label that would change the selection but is ignored. */
export function ignoredNodeLabel(
  fact: NodeCandidate,
  filters: readonly NodeFilter[],
  policy: LabelPolicy,
): string | undefined {
  const isNodeWithImageLabels = isNode(fact, filters, { ...policy, trustsImages: true });
  if (isNodeWithImageLabels === isNode(fact, filters, policy)) return undefined;
  const filterKeys = filters.flatMap((filter) => (filter.kind === "label" ? [filter.key] : []));
  return [OVERRIDE_LABEL, ...LOAD_BALANCER_LABELS.map(([key]) => key), CLUSTER_LABEL, ...filterKeys]
    .map((key) => ignoredLabelWarning(key, fact, policy))
    .find((text) => text !== undefined);
}

function isNodeBy(name: string, labels: Readonly<Record<string, string>>, filters: readonly NodeFilter[]): boolean {
  if (filters.length === 0) return false;
  const own = labels[OVERRIDE_LABEL]?.trim().toLowerCase();
  if (own === "true" || own === "false") return own === "true";
  if (LOAD_BALANCER_LABELS.some(([key, value]) => labels[key] === value)) return false;
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

/** `*` matches anything; all other characters match themselves. */
function patternOf(pattern: string): RegExp {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s");
}
