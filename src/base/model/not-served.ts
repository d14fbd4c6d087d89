/**
 * Why a container is not served: the codes that status tells, next to the reason in words. README explains each of them.
 */

/** It is left alone, by what it is or by what somebody has said. */
export const SKIP_CODES = [
  "host-network",
  "no-network",
  "shares-namespace",
  "default-network-only",
  "swarm-network",
  "opted-out",
  "kind-detached",
  "quarantined",
  "not-selected",
] as const;

export type SkipCode = (typeof SKIP_CODES)[number];

/** It should be served, and is not yet or not any more. Of what may fail besides, the reason tells. */
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
] as const;

export type FailureCode = (typeof FAILURE_CODES)[number];
