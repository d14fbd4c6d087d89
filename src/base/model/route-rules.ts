/**
 * RouteRules: what settings say about who is asked, beside what Docker would do.
 */
import type { RouteText } from "./server-text.ts";

export interface RouteRules {
  readonly everyone: readonly RouteText[];
  /** By the name of a network. */
  readonly networks: ReadonlyMap<string, readonly RouteText[]>;
  /** ndots is set for everyone: addresses of names without a dot are not asked for outside. */
  readonly isNdotsSet: boolean;
}

export const NO_RULES: RouteRules = { everyone: [], networks: new Map(), isNdotsSet: false };
