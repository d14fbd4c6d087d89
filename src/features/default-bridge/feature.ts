import { DEFAULT_BRIDGE_SETTINGS } from "../../base/model/name-choices.ts";
import { oneOf } from "../../config/kinds.ts";
import { featureValues, one } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";

const settings = {
  "default-bridge": one(
    oneOf(DEFAULT_BRIDGE_SETTINGS),
    "off",
    "serve containers on the default bridge, too, so that they resolve each other",
    { flag: "default-bridge <off|names>", needsEngine: true },
  ),
};

export const DEFAULT_BRIDGE = {
  settings,
  servesDefaultBridge: (all: Pick<Settings, "features">): boolean =>
    featureValues(settings, all)["default-bridge"] === "names",
  load: async () => await import("./default-bridge.ts"),
} as const;
