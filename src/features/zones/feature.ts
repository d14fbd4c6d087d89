import { NOT_WITH_STRICT, type WithFeatures } from "../../config/feature-entry.ts";
import { type Kind, quoteValue, readText } from "../../config/kinds.ts";
import { featureValues, list } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";
import { type KeptDomain, isNested, overlapText, zoneName, zoneProblem } from "../../config/zone-name.ts";

const ZONE: Kind<string> = {
  read: (value) => {
    const text = readText(value);
    const problem = zoneProblem(text);
    if (problem !== undefined) throw new Error(`invalid zone ${quoteValue(value)}: ${problem}`);
    return zoneName(text) ?? "";
  },
};

const settings = {
  zone: list(ZONE, "answer SERVICE.PROJECT.svc.DOMAIN and the other names of the Kubernetes DNS schema", {
    flag: "zone <domain>",
    isOneOrMore: true,
    needsEngine: true,
  }),
};

/** Names of the Kubernetes DNS schema for services and projects. */
export const ZONES = {
  settings,
  conflicts,
  zones: zonesOf,
  hostZones: zonesOf,
  report: async () => await import("./report.ts"),
  load: async () => await import("./zones.ts"),
} as const;

function zonesOf(all: Pick<Settings, "features">): readonly string[] {
  return featureValues(settings, all).zone;
}

function conflicts(all: Settings, { kept }: WithFeatures): readonly (readonly ["zone", string])[] {
  const zones = zonesOf(all);
  const problem = zoneConflict(zones, kept);
  return [
    ...(zones.length === 0 || all.behaviour.answersAllTypes ? [] : [["zone", NOT_WITH_STRICT] as const]),
    ...(problem === undefined ? [] : [["zone", problem] as const]),
  ];
}

/** Why these zones cannot be served together, with what to do; undefined if they can. */
function zoneConflict(zones: readonly string[], kept: readonly KeptDomain[]): string | undefined {
  for (const [index, zone] of zones.entries()) {
    const before = zones.slice(0, index);
    if (before.includes(zone)) return `zone "${zone}" is listed twice: remove one of them`;
    const nested = before.find((each) => isNested(each, zone));
    if (nested !== undefined) return `zones "${nested}" and "${zone}" are nested: remove one of them`;
    const overlap = overlapText(zone, kept);
    if (overlap !== undefined) return `zone ${overlap}`;
  }
  return undefined;
}
