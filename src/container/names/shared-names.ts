import type { NameSource } from "./source/name-source.ts";
import type { OtherMachines } from "./zone/member.ts";

/** What this machine knows from elsewhere, by features. It outlives a reload. */
export interface SharedNames {
  /** In their order. */
  readonly sources: readonly NameSource[];
  /** Undefined where nothing is known of others. */
  readonly machines: OtherMachines | undefined;
}
