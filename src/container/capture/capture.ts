/**
 * Capture: which destination addresses are ours in one namespace. Every mode of dns11 is a set of such addresses and
 * nothing else; a container on a user-defined network has exactly one, the address its resolv.conf names.
 */
export interface Capture {
  /** IPv4 addresses whose port 53 leads to us when the namespace itself asks. */
  readonly fromInside: readonly string[];
}

/** The address of Docker's embedded resolver, fixed in every container that has one. */
export const DOCKER_RESOLVER = "127.0.0.11";

export const USER_DEFINED_NETWORK: Capture = { fromInside: [DOCKER_RESOLVER] };
