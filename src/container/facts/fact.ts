/**
 * Facts: what the engine reports about containers and networks, independent of its API version. All decisions are based
 * on facts only.
 */

import type { Health } from "../../base/model/name-choices.ts";
import type { SplitLabels } from "./labels.ts";

/** A container on one network. */
export interface EndpointFact {
  /** A new one every time the container joins. */
  readonly endpointId: string;
  readonly networkId: string;
  readonly networkName: string;
  /** The container's names there, in Docker's order; its addresses point to the first. */
  readonly names: readonly string[];
  /** `target:alias` or `target`, as typed. */
  readonly links: readonly string[];
  readonly ipv4: string | undefined;
  readonly ipv6: string | undefined;
  readonly ipv4Gateway: string | undefined;
  readonly ipv6Gateway: string | undefined;
  /** The address that the engine gave its interface; whoever has NET_ADMIN in the container can change it there. */
  readonly mac?: string;
  readonly gatewayPriority: number;
  /** Compose has connected it: it alone lists a container's own name among its aliases. */
  readonly isComposed?: boolean;
}

/** One name with one address; several entries can have one name. */
export interface HostEntry {
  readonly name: string;
  readonly address: string;
}

/** A container's nameservers. */
export type NameserversFact =
  | {
      /** The list that Docker uses. */
      readonly kind: "listed";
      readonly servers: readonly { readonly from: "host" | "container"; readonly address: string }[];
      readonly isNdotsSet: boolean;
      /** Whether the user gave it to this very container (--dns). */
      readonly isOwn: boolean;
    }
  /** The current servers of the host's resolv.conf. */
  | {
      readonly kind: "host";
      readonly isNdotsSet: boolean;
      /** Docker's resolver asks the listener of dns11, from the container. */
      readonly isByListener?: true;
    }
  /** Those of its resolv.conf, at which it is served: the container has no resolver of Docker's. */
  | {
      readonly kind: "captured";
      readonly servers: readonly string[];
      readonly isNdotsSet: false;
      /** Docker copied them from the host's file, and nobody has changed them since: the host's current servers are meant. */
      readonly followsHost: boolean;
    }
  /** The list cannot be determined. `mayBeHosts`: no other servers than those of the host are known to have been given. */
  | { readonly kind: "unknown"; readonly mayBeHosts?: true };

/** A running container. Its `labels` are those set by its creator; the image's are separate. */
export interface ContainerFact extends SplitLabels {
  readonly id: string;
  readonly name: string;
  /** The engine has not described it yet: only its networks, addresses and namespace are known. */
  readonly isUndescribed?: boolean;
  /** It has its namespace, and has not run an instruction yet: what it has on its networks is not known. */
  readonly isStarting?: boolean;
  /** A new one for each start. */
  readonly startedAt: string;
  /** How often its restart policy has started it again. */
  readonly restarts?: number;
  readonly isPaused: boolean;
  /** The result of Docker's health check; undefined without one. */
  readonly health: Health | undefined;
  readonly pid: number;
  readonly sandboxKey: string;
  readonly networkMode: string;
  /** It may do what root may do on the host. */
  readonly isPrivileged?: boolean;
  /** What runs it, by the name that dockerd has for it, such as runc. */
  readonly runtime?: string;
  readonly hostname: string;
  readonly domainName: string;
  readonly ports: PortsFact;
  /** The engine's path to the container's resolv.conf. */
  readonly resolvConfPath: string | undefined;
  /** The same for its /etc/hosts. */
  readonly hostsPath?: string;
  /** The configured search list of a KIND node. */
  readonly kindSearch: string | undefined;
  /** What `--add-host` (extra_hosts) gave it. */
  readonly extraHosts: readonly HostEntry[];
  readonly nameservers: NameserversFact;
  readonly endpoints: readonly EndpointFact[];
  /** Its place on the default bridge, with the names that Docker would give it on another network. */
  readonly onDefaultBridge: BridgeEndpoint | undefined;
}

/** Ports as the engine writes them, such as 80/tcp. */
interface PortsFact {
  /** The container's creator published them (-p, ports). */
  readonly published: readonly string[];
  /** Exposed by its creator (--expose, expose), and not by its image. */
  readonly exposed: readonly string[];
  /** Exposed by its image (EXPOSE), or perhaps: while the image is not known, all that are exposed. */
  readonly ofImage: readonly string[];
  /** Where the published ones are bound on the host; missing if none is. */
  readonly bound?: readonly BoundPort[];
}

export interface BoundPort {
  /** The port of the container, such as 80/tcp. */
  readonly port: string;
  /** 0.0.0.0 or :: for all addresses of the host. */
  readonly address: string;
  readonly hostPort: number;
}

export type BridgeEndpoint = Pick<EndpointFact, "names" | "links" | "ipv4" | "ipv6">;

/** A container that is not running, and its names on each network that it will be on. */
export interface StoppedFact extends SplitLabels {
  readonly id: string;
  readonly name: string;
  /** When it ended, or was created, on the clock of `Date.now`. */
  readonly sinceMs: number;
  readonly networks: readonly { readonly name: string; readonly names: readonly string[] }[];
}

export interface NetworkFact {
  readonly id: string;
  readonly name: string;
  readonly driver: string;
  readonly scope: string;
  readonly isInternal: boolean;
  /** The option, as it is typed, that keeps its containers from reaching each other there. */
  readonly apartBy?: string;
  /** The Compose project that made it. */
  readonly project: string | undefined;
  /** The link of the engine's host that its containers are connected to; only the driver `bridge` has one. */
  readonly bridge?: string;
  /** Those of such a network, each written as 172.18.0.0/16. */
  readonly addressBlocks?: readonly string[];
  /** Through which its containers reach what is outside, unless it is internal. */
  readonly gateways?: readonly string[];
  /** A network of several machines has it. */
  readonly swarm?: SwarmNetworkFact;
}

interface SwarmNetworkFact {
  /** It carries published ports only; Docker gives no names there. */
  readonly isIngress: boolean;
  /** Each is written as 10.0.1.0/24. */
  readonly subnets: readonly string[];
}

/** The network of containers that were started without one. */
export const DEFAULT_BRIDGE = "bridge";

/** Predefined networks, on which Docker provides no resolver. */
const WITHOUT_RESOLVER = new Set([DEFAULT_BRIDGE, "host", "none", "default"]);

/** Whether a container on this network has Docker's embedded DNS, and a name there. */
export function isUserDefined(networkName: string): boolean {
  return !WITHOUT_RESOLVER.has(networkName);
}

/**
 * Whether a container's runtime gives it a network stack of its own, as gVisor and Kata Containers do. Its packets are made in
 * there and put on the link: none passes the loopback interface of its namespace, nor any rule there. Users choose the names of
 * runtimes, so that one counts by what its name contains.
 */
const WITH_OWN_STACK = /(?:^|[^a-z])(?:runsc|gvisor|kata)(?:[^a-z]|$)/i;

export function hasOwnStack({ runtime }: { readonly runtime?: string }): boolean {
  return runtime !== undefined && WITH_OWN_STACK.test(runtime);
}

/** The mode of a container that was started in the network namespace of another one (--network container:NAME). */
const PREFIX = "container:";

/** The other one, by ID or name; undefined for a container with a namespace of its own. */
export function sharedWith(networkMode: string): string | undefined {
  return networkMode.startsWith(PREFIX) ? networkMode.slice(PREFIX.length) : undefined;
}

/** The address that a container leaves its networks with: that on the network of its default gateway, as Docker chooses it. */
export function outgoingAddress({ endpoints, onDefaultBridge }: ContainerFact): string | undefined {
  const inOrder = endpoints.toSorted(
    (a, b) =>
      b.gatewayPriority - a.gatewayPriority ||
      Number(b.ipv4Gateway !== undefined) - Number(a.ipv4Gateway !== undefined) ||
      gateways(b) - gateways(a) ||
      Buffer.compare(Buffer.from(a.networkName), Buffer.from(b.networkName)),
  );
  const addresses = [...inOrder, ...(onDefaultBridge === undefined ? [] : [onDefaultBridge])];
  return (
    addresses.find(({ ipv4 }) => ipv4 !== undefined)?.ipv4 ?? addresses.find(({ ipv6 }) => ipv6 !== undefined)?.ipv6
  );
}

function gateways({ ipv4Gateway, ipv6Gateway }: EndpointFact): number {
  return Number(ipv4Gateway !== undefined) + Number(ipv6Gateway !== undefined);
}

/** What an outsider has of its own. Its name is its id; engines give containers ids of 64 hexadecimal digits. */
type OutsiderPlace = Pick<ContainerFact, "id" | "networkMode" | "endpoints">;

/** Whoever asks dns11 and is no container, as one more container, so that status, tail and explain can name it. */
export function outsiderFact({ id, networkMode, endpoints }: OutsiderPlace): ContainerFact {
  return {
    id,
    name: id,
    labels: {},
    imageLabels: { labels: {}, source: "known" },
    startedAt: "",
    isPaused: false,
    pid: 0,
    sandboxKey: "",
    networkMode,
    hostname: "",
    domainName: "",
    ports: { published: [], exposed: [], ofImage: [] },
    resolvConfPath: undefined,
    kindSearch: undefined,
    extraHosts: [],
    health: undefined,
    nameservers: { kind: "host", isNdotsSet: false },
    endpoints,
    onDefaultBridge: undefined,
  };
}

/** It is on a network for the sake of the names there, and has no address. */
export function outsiderEndpoint(
  endpointId: string,
  place: Pick<EndpointFact, "networkId" | "networkName" | "ipv4Gateway" | "ipv6Gateway">,
): EndpointFact {
  return { ...place, endpointId, names: [], links: [], ipv4: undefined, ipv6: undefined, gatewayPriority: 0 };
}
