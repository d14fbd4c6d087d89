/**
 * LabelChoices: labels with which a container's creator chooses one of several words, where a setting has the same choice
 * for all containers.
 */
import { LIMITS } from "../../base/limits.ts";
import { parseDuration } from "../../base/lib/quantity.ts";
import { shortened } from "../../base/lib/text.ts";
import { ANSWERS_CHOICES } from "../../base/model/answered-by.ts";
import {
  ADDRESS_ORDERS,
  type AddressOrder,
  NAME_CHOICES_DEFAULTS,
  PTR_FORMS,
  type PtrForm,
  HEALTH_POLICIES,
  type HealthPolicy,
} from "../../base/model/name-choices.ts";
import type { Labels } from "./labels.ts";

const HEALTH_LABEL = "io.dns11.health";
const TTL_LABEL = "io.dns11.ttl";
const PTR_LABEL = "io.dns11.ptr";
const ORDER_LABEL = "io.dns11.address-order";
export const ANSWERS_LABEL = "io.dns11.answers";
export const SEARCH_LABEL = "io.dns11.search";
/** A name with fewer dots is tried below the search list first: `_port._protocol.service.project.svc` has four. */
export const SEARCH_NDOTS = 5;
export const SEARCH_OPTION = `ndots:${SEARCH_NDOTS}`;
/** The search list of its resolv.conf: that of its project in a zone, as a pod has it, or as Docker wrote it. */
const SEARCH_CHOICES = ["project", "docker"] as const;

export const CHOICE_LABELS = [...[HEALTH_LABEL, TTL_LABEL, PTR_LABEL, ORDER_LABEL], ANSWERS_LABEL, SEARCH_LABEL];

const SECOND_MS = 1_000;
const TTL_MS_MAX = 7 * 86_400 * SECOND_MS;

export interface Choice<T> {
  readonly policy: T;
  readonly warning?: string;
}

/** What its health check means. */
export function labelHealth(labels: Labels, setting: HealthPolicy): Choice<HealthPolicy> {
  return choiceOf(labels, HEALTH_LABEL, HEALTH_POLICIES, setting);
}

/** What its addresses point to. */
export function labelPtr(labels: Labels, setting: PtrForm): Choice<PtrForm> {
  return choiceOf(labels, PTR_LABEL, PTR_FORMS, setting);
}

/** The order of the addresses of its names. */
export function labelOrder(labels: Labels, setting: AddressOrder): Choice<AddressOrder> {
  return choiceOf(labels, ORDER_LABEL, ADDRESS_ORDERS, setting);
}

/** Whether the kernel may answer its queries. */
export function labelAnswers(labels: Labels): Choice<(typeof ANSWERS_CHOICES)[number]> {
  return choiceOf(labels, ANSWERS_LABEL, ANSWERS_CHOICES, "auto");
}

/** Whose search list it has. */
export function labelSearch(labels: Labels): Choice<(typeof SEARCH_CHOICES)[number]> {
  return choiceOf(labels, SEARCH_LABEL, SEARCH_CHOICES, "docker");
}

/** The TTL of its names in seconds; undefined for that of the settings. */
export function labelTtl(labels: Labels): Choice<number | undefined> {
  const text = labels[TTL_LABEL];
  if (text === undefined) return { policy: undefined };
  const ms = text.length > LIMITS.labelCharsShown ? undefined : parseDuration(text.trim());
  if (ms !== undefined && ms % SECOND_MS === 0 && ms <= TTL_MS_MAX) return { policy: ms / SECOND_MS };
  return { policy: undefined, warning: invalid(TTL_LABEL, text, "whole seconds from 0 to 7d, such as 30s or 5m") };
}

/** The warnings about labels with invalid choices. */
export function choiceWarnings(labels: Labels): (string | undefined)[] {
  const { ptr, order } = NAME_CHOICES_DEFAULTS;
  const all: readonly Choice<unknown>[] = [
    labelHealth(labels, "ignore"),
    labelTtl(labels),
    labelPtr(labels, ptr),
    labelOrder(labels, order),
    labelAnswers(labels),
    labelSearch(labels),
  ];
  return all.map(({ warning }) => warning);
}

/** The word of the label; the setting's without a label, or with an invalid one, which the warning names. */
export function choiceOf<T extends string>(labels: Labels, key: string, words: readonly T[], setting: T): Choice<T> {
  const text = labels[key];
  if (text === undefined) return { policy: setting };
  const policy = words.find((each) => each === text.trim().toLowerCase());
  if (policy !== undefined) return { policy };
  return { policy: setting, warning: invalid(key, text, words.join(", ")) };
}

function invalid(key: string, text: string, allowed: string): string {
  return `invalid label ${key}="${shortened(text, LIMITS.labelCharsShown)}": use ${allowed}; the label is ignored`;
}
