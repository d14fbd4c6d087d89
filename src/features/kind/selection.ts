/**
 * Selection: which containers are nodes of a cluster, as KIND, k3d and minikube (with its driver docker) make them. A cluster's load
 * balancer and registry have the same labels but are no nodes: they have no pods, and query 127.0.0.11 like any container.
 */
import type { NodeFilter } from "./feature.ts";
import { LABEL_DEFAULTS, type LabelPolicy } from "../../base/model/name-choices.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { labelKeysOf } from "../../container/facts/label-keys.ts";
import { type SplitLabels, effectiveLabels, ignoredLabelWarning } from "../../container/facts/labels.ts";

/** Each on every container of a cluster that this program makes. */
const CLUSTER_LABELS = ["io.x-k8s.kind.cluster", "k3d.cluster", "role.minikube.sigs.k8s.io"];
/** Overrides the selection for one container. */
const OVERRIDE_LABEL = "io.dns11.kind";
/** What a container is in its cluster, and the words for its nodes; all others run no pods. */
const ROLE_LABELS: readonly (readonly [string, readonly string[]])[] = [
  ["io.x-k8s.kind.role", ["control-plane", "worker"]],
  ["k3d.role", ["server", "agent"]],
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
  return [OVERRIDE_LABEL, ...ROLE_LABELS.map(([key]) => key), ...CLUSTER_LABELS, ...labelKeysOf(filters)]
    .map((key) => ignoredLabelWarning(key, fact, policy))
    .find((text) => text !== undefined);
}

function isNodeBy(name: string, labels: Readonly<Record<string, string>>, filters: readonly NodeFilter[]): boolean {
  if (filters.length === 0) return false;
  const own = labels[OVERRIDE_LABEL]?.trim().toLowerCase();
  if (own === "true" || own === "false") return own === "true";
  if (ROLE_LABELS.some(([key, nodes]) => !isAmong(labels[key], nodes))) return false;
  return filters.some((filter) => selects(filter, name, labels));
}

function selects(filter: NodeFilter, name: string, labels: Readonly<Record<string, string>>): boolean {
  switch (filter.kind) {
    case "auto":
      return CLUSTER_LABELS.some((key) => Object.hasOwn(labels, key));
    case "label":
      return Object.hasOwn(labels, filter.key) && (filter.value === undefined || labels[filter.key] === filter.value);
    case "name":
      return patternOf(filter.pattern).test(name);
  }
}

function isAmong(role: string | undefined, nodes: readonly string[]): boolean {
  return role === undefined || nodes.includes(role);
}

/** `*` matches anything; all other characters match themselves. */
function patternOf(pattern: string): RegExp {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s");
}
