import { NOT_WITH_STRICT } from "../../config/feature-entry.ts";
import { oneOf } from "../../config/kinds.ts";
import { featureValues, one } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";

/** Which program of the machine is asked; `auto`: avahi-daemon if it runs, else systemd-resolved. */
const MEANS = ["off", "auto", "avahi", "resolved"] as const;

export type MdnsMeans = (typeof MEANS)[number];

const settings = {
  mdns: one(
    oneOf(MEANS),
    "off",
    `resolve names in local, which machines of the local network announce (mDNS), by a program of this machine: ${MEANS.join(", ")}`,
    { needsEngine: true },
  ),
};

export const MDNS = {
  settings,
  conflicts: (all: Settings): readonly (readonly ["mdns", string])[] =>
    featureValues(settings, all).mdns !== "off" && !all.behaviour.answersAllTypes ? [["mdns", NOT_WITH_STRICT]] : [],
  report: async () => await import("./report.ts"),
  load: async () => await import("./mdns.ts"),
} as const;

/** Off in strict mode, where Docker has no such names. */
export function meansOf(all: Pick<Settings, "features" | "behaviour">): MdnsMeans {
  return all.behaviour.answersAllTypes ? featureValues(settings, all).mdns : "off";
}
