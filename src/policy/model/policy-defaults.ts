/**
 * PolicyDefaults: what a policy is where it does not say, and the bounds of what it may say.
 */
import { TYPE } from "../../base/dns/record-type.ts";
import type { Policy } from "./policy.ts";

/** What programs need to connect. All others carry more data than addresses do, so wildcards allow them only where a policy says so. */
const WILDCARD_TYPES: ReadonlySet<number> = new Set([
  TYPE.A,
  TYPE.AAAA,
  TYPE.CNAME,
  TYPE.HTTPS,
  TYPE.SVCB,
  TYPE.SRV,
  TYPE.PTR,
  TYPE.MX,
]);

export const POLICY_DEFAULTS = {
  peers: "allow",
  host: "deny",
  private: "deny",
  addresses: "names",
  keepMs: 3_600_000,
  newNamesPerMinute: 60,
  types: WILDCARD_TYPES,
} as const satisfies Partial<Policy>;

export const POLICY_LIMITS = {
  /** Each is matched with each container whenever containers change. */
  policies: 100,
  rules: 2_000,
  /** The kernel compares a new connection with each. */
  enforcedBlocks: 500,
  scopes: 50,
  types: 30,
  newNamesPerMinute: 10_000,
  keepMs: 7 * 86_400_000,
} as const;
