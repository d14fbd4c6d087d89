import { NO_CHOICE_WITH_STRICT } from "../../config/feature-entry.ts";
import { oneOf } from "../../config/kinds.ts";
import { featureValues, one } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";

/**
 * What the names of a container mean while it is not running. They stay local, so that no upstream server learns them, and
 * none answers in its place; `forward` is what Docker does.
 */
export const STOPPED_POLICIES = ["nxdomain", "empty", "last-address", "forward"] as const;
export type StoppedPolicy = (typeof STOPPED_POLICIES)[number];

const settings = {
  stopped: one(
    oneOf(STOPPED_POLICIES),
    "nxdomain",
    `what names of stopped containers mean: ${STOPPED_POLICIES.join(", ")}`,
    { strict: "forward" },
  ),
};

export const STOPPED = {
  settings,
  conflicts: (all: Settings): readonly (readonly ["stopped", string])[] =>
    all.isStrict && featureValues(settings, all).stopped !== "forward" ? [["stopped", NO_CHOICE_WITH_STRICT]] : [],
  load: async () => await import("./stopped.ts"),
} as const;
