/**
 * Capture: which destination addresses are ours in one namespace. Every mode of dns11 is a set of such addresses and
 * nothing else; a container on a user-defined network has exactly one, the address its resolv.conf names, and a KIND node
 * has those, too, under which its pods ask.
 */
export interface Capture {
  readonly redirects: readonly Redirect[];
  /** Interfaces, by index, whose packets are never taken: the node's own side of Docker's networks. */
  readonly bypassInterfaces: readonly number[];
  /** Packets from outside may reach 127.0.0.0/8 in this namespace: then those that nobody led there are dropped. */
  readonly guardsLoopback: boolean;
}

/** One pair of sockets, and the addresses whose port 53 leads to it. All of one family. */
export interface Redirect {
  /** Where the sockets are bound, at ports that the kernel chooses. */
  readonly bind: string;
  /** When the namespace itself asks. */
  readonly fromInside: readonly string[];
  /** When somebody behind the namespace asks through it. */
  readonly fromPods: readonly string[];
  /** What a reply carries whose conversation the kernel has forgotten; without it the bound address. */
  readonly replySource?: string;
}

/** The address of Docker's embedded resolver, fixed in every container that has one. */
export const DOCKER_RESOLVER = "127.0.0.11";

/** The lead that every container with a resolver has. */
export const DOCKER_REDIRECT: Redirect = { bind: DOCKER_RESOLVER, fromInside: [DOCKER_RESOLVER], fromPods: [] };

export const CONTAINER_CAPTURE: Capture = { redirects: [DOCKER_REDIRECT], bypassInterfaces: [], guardsLoopback: false };
