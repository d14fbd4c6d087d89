import { type Kind, NETWORK_NAME, oneOf, quoteValue } from "../../config/kinds.ts";
import { featureValues, list } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";

const WORDS = ["all", "ipv4", "ipv6", "reachable"] as const;
type Families = (typeof WORDS)[number];

/** Which addresses containers are given: those on a network, or all others. */
export interface FamiliesEntry {
  readonly network: string | undefined;
  readonly families: Families;
}

const WORD = oneOf(WORDS);

export const FAMILIES_ENTRY: Kind<FamiliesEntry> = {
  read: (value) => {
    if (typeof value !== "string" || !value.includes("=")) return { network: undefined, families: WORD.read(value) };
    const at = value.lastIndexOf("=");
    try {
      return { network: NETWORK_NAME.read(value.slice(0, at)), families: WORD.read(value.slice(at + 1)) };
    } catch {
      throw new Error(`invalid value ${quoteValue(value)}: use ${WORDS.join(", ")}, or NETWORK=ipv4 for a network`);
    }
  },
  write: entryText,
};

export function entryText({ network, families }: FamiliesEntry): string {
  return network === undefined ? families : `${network}=${families}`;
}

const settings = {
  families: list(
    FAMILIES_ENTRY,
    "which addresses containers are given: all, ipv4, ipv6, reachable, or NETWORK=WORD for a network",
    {
      isOneOrMore: true,
      fallback: [{ network: undefined, families: "all" }],
    },
  ),
};

export const FAMILIES = {
  settings,
  conflicts: (all: Settings): readonly (readonly ["families", string])[] => {
    const seen = new Set<string | undefined>();
    for (const { network } of familiesOf(all)) {
      const whose = network === undefined ? "everyone else" : `network "${network}"`;
      if (seen.has(network)) return [["families", `has two values for ${whose}: remove one of them`]];
      seen.add(network);
    }
    return [];
  },
  report: async () => await import("./report.ts"),
  load: async () => await import("./families.ts"),
} as const;

export function familiesOf(all: Pick<Settings, "features">): readonly FamiliesEntry[] {
  return featureValues(settings, all).families;
}
