/**
 * ProjectSearch: the search list with which a container finds the services of its project, as the file of a pod has it: the
 * project, all projects, and the zone.
 */
import { COMPOSE_LABEL } from "../../base/model/compose-labels.ts";
import type { LabelPolicy } from "../../base/model/label-policy.ts";
import type { ContainerFact } from "../facts/fact.ts";
import { SEARCH_LABEL, SEARCH_NDOTS, labelSearch } from "../facts/label-choices.ts";
import { projectIn } from "../facts/label-service.ts";
import { effectiveLabels } from "../facts/labels.ts";
import { SEARCH_MAX, type SearchList } from "../kind/resolv-conf-text.ts";

export interface SearchSettings {
  readonly labels: LabelPolicy;
  readonly zones: readonly string[];
}

/** The list, or why there is none. */
export type ProjectSearch = { readonly list: SearchList } | { readonly problem: string };

/** Undefined for a container that does not ask for it. */
export function projectSearch(
  { labels, imageLabels }: Pick<ContainerFact, "labels" | "imageLabels">,
  settings: SearchSettings,
): ProjectSearch | undefined {
  const effective = effectiveLabels({ labels, imageLabels }, settings.labels);
  if (labelSearch(effective).policy !== "project") return undefined;
  const [zone] = settings.zones;
  const project = projectIn(effective);
  if (zone === undefined) return { problem: withoutEffect("there is no zone: set zone") };
  if (project === undefined) {
    const remedy = `set label io.dns11.project, or start it with Compose (${COMPOSE_LABEL.project})`;
    return { problem: withoutEffect(`the container belongs to no project: ${remedy}`) };
  }
  const domains = [`${project}.svc.${zone}`, `svc.${zone}`, zone];
  if (domains.join(" ").length > SEARCH_MAX.chars)
    return { problem: withoutEffect(`the search list would have more than ${SEARCH_MAX.chars} characters`) };
  return { list: { domains, ndots: SEARCH_NDOTS } };
}

export function withoutEffect(reason: string): string {
  return `label ${SEARCH_LABEL} has no effect: ${reason}`;
}
