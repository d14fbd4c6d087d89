/**
 * Presets: faults that have names, because people know them by what they do to programs.
 */
import type { RuleRequest } from "../lease.ts";

export interface Preset {
  readonly rule: Omit<RuleRequest, "name" | "in">;
  /** What happens, for help and documents. */
  readonly what: string;
}

export const PRESETS = {
  "five-seconds": {
    rule: { action: "drop", types: ["AAAA"], every: 2, perName: true },
    what: "the first query for the IPv6 addresses of each name gets no reply, and the second one does, so glibc waits its five seconds",
  },
  "dead-first-server": {
    rule: { action: "drop", every: 2, perName: true },
    what: "the first query for each name gets no reply, and the second one does, as if the first server were dead",
  },
  flap: {
    rule: { action: "nxdomain", every: 2 },
    what: "the name is there at every other query",
  },
} as const satisfies Record<string, Preset>;

export type PresetName = keyof typeof PRESETS;
