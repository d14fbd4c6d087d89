/**
 * LabelChoices: labels with which a container's creator chooses one of several words, where a setting has the same choice
 * for all containers.
 */
import { LIMITS } from "../../base/limits.ts";
import { shortened } from "../../base/lib/shortened.ts";
import { HEALTH_POLICIES, type HealthPolicy } from "../../base/model/health-policy.ts";
import { STOPPED_POLICIES, type StoppedPolicy } from "../../base/model/stopped-policy.ts";
import type { Labels } from "./labels.ts";

export const HEALTH_LABEL = "io.dns11.health";
export const STOPPED_LABEL = "io.dns11.stopped";

interface Choice<T> {
  readonly policy: T;
  readonly warning?: string;
}

/** What its health check means. */
export function labelHealth(labels: Labels, setting: HealthPolicy): Choice<HealthPolicy> {
  return choiceOf(labels, HEALTH_LABEL, HEALTH_POLICIES, setting);
}

/** What its names mean while it is not running. */
export function labelStopped(labels: Labels, setting: StoppedPolicy): Choice<StoppedPolicy> {
  return choiceOf(labels, STOPPED_LABEL, STOPPED_POLICIES, setting);
}

/** The word of the label; the setting's without a label, or with an invalid one, which the warning names. */
function choiceOf<T extends string>(labels: Labels, key: string, words: readonly T[], setting: T): Choice<T> {
  const text = labels[key];
  if (text === undefined) return { policy: setting };
  const policy = words.find((each) => each === text.trim().toLowerCase());
  if (policy !== undefined) return { policy };
  const shown = shortened(text, LIMITS.labelCharsShown);
  return { policy: setting, warning: `invalid label ${key}="${shown}": use ${words.join(", ")}; the label is ignored` };
}
