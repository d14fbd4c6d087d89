/**
 * NotServed: codes for why a container is not served, shown by status; docs/codes.md explains each.
 */

/** Skipped, because of what the container is or because of a setting. */
export const SKIP_CODES = [
  "host-network",
  "no-network",
  "shares-namespace",
  "default-network-only",
  "no-nameserver",
  "own-stack",
  "listen",
  "opted-out",
  "kind-detached",
  "quarantined",
  "not-selected",
  "host-names",
] as const;

/** Attached, but a file is mounted over its resolv.conf, and nothing has queried dns11. */
export const NOT_ASKED = "not-asked";

export type SkipCode = (typeof SKIP_CODES)[number];

/** The container should be served, but is not yet or no longer. For other failures see the reason. */
export const FAILURE_CODES = [
  "NAMESPACE_GONE",
  "NAMESPACE_IS_HOST",
  "NAMESPACE_NOT_READY",
  "PID_ELSEWHERE",
  "PID_NOT_CONTAINER",
  "OWNED_ELSEWHERE",
  "ATTACH_FAILED",
  "REFIT_FAILED",
  "PROBE_FAILED",
  "UNVERIFIED",
  "NO_DESCRIPTORS",
  "RULES_LOCKED",
] as const;

export type FailureCode = (typeof FAILURE_CODES)[number];
