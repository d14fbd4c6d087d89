/**
 * Compose: the project and the service of a container, from its labels.
 */
import { COMPOSE_LABEL } from "../../base/model/compose.ts";
import type { LabelPolicy } from "../../base/model/name-choices.ts";
import { type Labels, type SplitLabels, effectiveLabels } from "./labels.ts";

export interface ComposeService {
  readonly project: string;
  readonly service: string;
  /** The first of its Compose files. */
  readonly file: string | null;
  readonly files: readonly string[];
  readonly folder: string | undefined;
  /** The same for all containers that were made from the same text of the files. */
  readonly configHash: string | undefined;
  /** Made by `docker compose run`, which gives no name of the service. */
  readonly isOneOff: boolean;
}

/** undefined for a container that no Compose project has created. */
function composeServiceIn(labels: Labels): ComposeService | undefined {
  const project = labels[COMPOSE_LABEL.project];
  const service = labels[COMPOSE_LABEL.service];
  if (!project || !service) return undefined;
  const files = (labels[COMPOSE_LABEL.files] ?? "").split(",").filter(Boolean);
  return {
    project,
    service,
    file: files[0] ?? null,
    files,
    folder: labels[COMPOSE_LABEL.folder] || undefined,
    configHash: labels[COMPOSE_LABEL.hash] || undefined,
    isOneOff: isOneOff(labels),
  };
}

/** Made by `docker compose run`. It has the number 1, like the first container of its service, which it is none of. */
export function isOneOff(labels: Labels): boolean {
  return labels[COMPOSE_LABEL.oneOff]?.toLowerCase() === "true";
}

/**
 * That of a container. An image may not claim one: its author would decide which container an operator's command is
 * about, and which words the operator's shell completes.
 */
export function composeServiceOf({ labels }: SplitLabels): ComposeService | undefined {
  return composeServiceIn(labels);
}

/** The project whose names and networks a container sees: that of its creator, whom the operator trusts. */
export function projectOf(labels: SplitLabels, policy: LabelPolicy): string | undefined {
  return effectiveLabels(labels, policy)[COMPOSE_LABEL.project] || undefined;
}

/** SERVICE.PROJECT. The containers of `docker compose run` have no name of their service, as in Compose. */
export function serviceName(labels: Labels): string | undefined {
  const found = composeServiceIn(labels);
  if (found === undefined || found.isOneOff) return undefined;
  return `${found.service}.${found.project}`.toLowerCase();
}
