import { HOST_DOMAIN_DEFAULT } from "../../config/settings-table.ts";
import type { WithFeatures } from "../../config/feature-entry.ts";
import { oneOf } from "../../config/kinds.ts";
import { featureValues, one } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";
import type { KeptDomain } from "../../config/zone-name.ts";

/**
 * `capture`: dns11 answers what programs ask the servers in /etc/resolv.conf for names of the domain. `resolved`:
 * systemd-resolved asks dns11 for them. `auto`: the second where programs ask systemd-resolved, else the first.
 */
const HOST_MEANS = ["off", "auto", "resolved", "capture"] as const;

/** Whether programs on the machine itself resolve container names, by which means, and below which domain. */
export interface HostPolicy {
  readonly means: (typeof HOST_MEANS)[number];
  /** In lower case, without dots at its ends. */
  readonly domain: string;
  /** The zones of the settings, which resolve on the host as well. */
  readonly zones: readonly string[];
}

const settings = {
  "host-names": one(
    oneOf(HOST_MEANS),
    "off",
    `resolve container names on the host, as in web.docker: ${HOST_MEANS.join(", ")}`,
    { flag: "host-names [means]", preset: "auto", needsEngine: true },
  ),
};

export const HOST_NAMES = {
  settings,
  conflicts,
  hasNamesBelowHostDomain: (all: Pick<Settings, "features">): boolean => meansOf(all) !== "off",
  keptDomains: (all: Settings): readonly KeptDomain[] => {
    const { means, domain } = hostPolicyOf(all);
    return means === "off" ? [] : [{ key: "host-domain", domain }];
  },
  report: async () => await import("./report.ts"),
  load: async () => await import("./host-names.ts"),
} as const;

export function hostPolicyOf(all: Pick<Settings, "features" | "hostDomain" | "hostZones">): HostPolicy {
  return { means: meansOf(all), domain: all.hostDomain, zones: all.hostZones };
}

function meansOf(all: Pick<Settings, "features">): HostPolicy["means"] {
  return featureValues(settings, all)["host-names"];
}

function conflicts(all: Settings, { isHostDomainUsed }: WithFeatures): readonly (readonly ["host-domain", string])[] {
  if (isHostDomainUsed || all.hostDomain === HOST_DOMAIN_DEFAULT) return [];
  return [["host-domain", "has no effect with host-names: off. Use host-names: auto, or remove this setting"]];
}
