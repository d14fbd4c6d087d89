/**
 * Capture: the destination addresses whose DNS queries are redirected to dns11 in one namespace. A container on a
 * user-defined network has exactly one, the address in its resolv.conf. A KIND node also has the addresses that its
 * pods query.
 */
export interface Capture {
  readonly redirects: readonly Redirect[];
  /** Interfaces, by index, whose packets are never redirected: the node's own interfaces on Docker's networks. */
  readonly bypassInterfaces: readonly number[];
  /** Packets from outside may reach 127.0.0.0/8 in this namespace: drop those that no rule redirected there. */
  readonly guardsLoopback: boolean;
  /** Packets from outside never reach the ports of our sockets directly: on the host they could. */
  readonly guardsPorts?: true;
  /** What differs on the host, where programs may ask other servers for all names but ours. */
  readonly host?: HostSelection;
}

/** On the host only queries for some names are redirected, and only over UDP, where the rules can read them. */
interface HostSelection {
  /** Wire names, each with its final zero byte: queries for these and for names below them are redirected. */
  readonly names: readonly Uint8Array[];
  /** The same for reverse names, of which there may be many. */
  readonly reverseNames: readonly Uint8Array[];
  /** Control groups whose processes are never redirected, because they forward for others: the engine, resolvers. */
  readonly spared: readonly ControlGroup[];
}

/** A control group of version 2, and its depth below the root. */
export interface ControlGroup {
  readonly id: bigint;
  readonly level: number;
}

/** One pair of sockets, and the addresses whose port 53 is redirected to it. All of one family. */
export interface Redirect {
  /** The address the sockets are bound to, at ports that the kernel chooses. */
  readonly bind: string;
  /** Destinations of queries from inside the namespace. */
  readonly fromInside: readonly string[];
  /** Destinations of queries that pods send through the namespace. */
  readonly fromPods: readonly string[];
  /** Source address of a reply whose conntrack entry is gone; by default the bound address. */
  readonly replySource?: string;
}

/** The address of Docker's embedded DNS, the same in every container that has it. */
export const DOCKER_RESOLVER = "127.0.0.11";

/** The redirect of every container with Docker's embedded DNS. */
export const DOCKER_REDIRECT: Redirect = { bind: DOCKER_RESOLVER, fromInside: [DOCKER_RESOLVER], fromPods: [] };

/** The destinations of queries from inside the namespace, in order. */
export function capturedInside({ redirects }: Capture): readonly string[] {
  return redirects.flatMap(({ fromInside }) => fromInside);
}

/** The protocols in which queries of the namespace itself are redirected. */
export function protocolsOf({ host }: Capture): readonly ("udp" | "tcp")[] {
  return host === undefined ? ["udp", "tcp"] : ["udp"];
}

export const CONTAINER_CAPTURE: Capture = { redirects: [DOCKER_REDIRECT], bypassInterfaces: [], guardsLoopback: false };
