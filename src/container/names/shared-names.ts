/**
 * SharedNames: what this machine knows from elsewhere: the names of the store that machines share, the containers of other
 * machines, and the names of features. They outlive a reload.
 */
import type { NameSource } from "./source/name-source.ts";
import type { OtherMachines } from "./zone/member.ts";

export interface SharedNames {
  readonly source: NameSource;
  /** Those of features, in their order. */
  readonly others?: readonly NameSource[];
  /** Undefined where nothing is published. */
  readonly remote: OtherMachines | undefined;
}
