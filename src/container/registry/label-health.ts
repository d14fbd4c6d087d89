/**
 * LabelHealth: the label with which a container's creator chooses what its health check means.
 */
import { LIMITS } from "../../base/limits.ts";
import { shortened } from "../../base/lib/shortened.ts";
import { HEALTH_POLICIES, type HealthPolicy } from "../../base/model/health-policy.ts";
import type { Labels } from "./labels.ts";

export const HEALTH_LABEL = "io.dns11.health";

/** The policy of the label; the setting's without a label, or with an invalid one, which the warning names. */
export function labelHealth(
  labels: Labels,
  setting: HealthPolicy,
): { readonly policy: HealthPolicy; readonly warning?: string } {
  const text = labels[HEALTH_LABEL];
  if (text === undefined) return { policy: setting };
  const policy = HEALTH_POLICIES.find((each) => each === text.trim().toLowerCase());
  if (policy !== undefined) return { policy };
  const shown = shortened(text, LIMITS.labelCharsShown);
  return {
    policy: setting,
    warning: `invalid label ${HEALTH_LABEL}="${shown}": use ${HEALTH_POLICIES.join(", ")}; the label is ignored`,
  };
}
