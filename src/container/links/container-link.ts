/**
 * ContainerLink: where a container's packets enter the Docker daemon's host: the host's end of a veth whose other end is in
 * the container's network namespace. And NoLink: why a container has none on a network.
 */

export interface ContainerLink {
  /** The container that owns the network namespace; others may share it. */
  readonly containerId: string;
  /** The network's id; undefined where Docker names none: docker_gwbridge of swarm, or a link that Docker did not make. */
  readonly networkId: string | undefined;
  /** Of the bridge that it is a port of. */
  readonly bridge: string | undefined;
  /** Its index in the Docker daemon's network namespace. */
  readonly index: number;
  /** Its name there. A container that has NET_ADMIN, without a user namespace, can make links there itself: any bytes. */
  readonly name: string;
  /** The index of the end in the container. */
  readonly insideIndex: number;
  /** The name of that end. Whoever has NET_ADMIN in the container chooses it: only show it. */
  readonly inside: string;
  /** The MAC address that Docker gave the end in the container. */
  readonly mac: string | undefined;
  /** The addresses that Docker gave it, and the link-local one that belongs to `mac`. */
  readonly addresses: readonly string[];
}

/** Why a container has no link on the host: at all, or on one network. */
export interface NoLink {
  readonly reason:
    | "host-network"
    | "shared-namespace"
    | "no-network"
    /** The network's driver connects containers in another way: macvlan, ipvlan, overlay, a plugin. */
    | "other-driver"
    /** The namespace could not be opened, or proven to be the container's. */
    | "unproven"
    /** There should be one. */
    | "not-found";
  readonly networkId?: string;
  /** For people. */
  readonly text: string;
  /** `shared-namespace`: the container whose namespace it is, by name or id. */
  readonly owner?: string;
}

/** The links of a container, and where there is none. */
export interface LinksOfContainer {
  readonly links: readonly ContainerLink[];
  readonly missing: readonly NoLink[];
}
