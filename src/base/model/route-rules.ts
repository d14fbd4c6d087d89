/**
 * RouteRules: routes from the settings, in addition to what Docker would use.
 */
import type { RouteText } from "./server-text.ts";

export interface RouteRules {
  readonly everyone: readonly RouteText[];
  /** The key is the name of the network. */
  readonly networks: ReadonlyMap<string, readonly RouteText[]>;
}

export const NO_RULES: RouteRules = { everyone: [], networks: new Map() };
