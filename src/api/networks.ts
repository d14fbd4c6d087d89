/**
 * Networks: the networks of the engine and the containers on them, as returned by `GET /v1/networks`.
 */

export interface NetworkMember {
  readonly container: string;
  readonly containerId: string;
  readonly ipv4: string | null;
  readonly ipv6: string | null;
}

interface NetworkSubnet {
  /** It is in CIDR notation. */
  readonly subnet: string;
  readonly gateway: string | null;
}

export interface NetworkReport {
  readonly id: string;
  readonly name: string;
  readonly driver: string;
  readonly scope: string;
  /** Without a way out: servers of the host are not queried for its containers. */
  readonly isInternal: boolean;
  /** Whether containers have names there. */
  readonly hasNames: boolean;
  /** The Compose project that made it. */
  readonly project: string | null;
  readonly subnets: readonly NetworkSubnet[];
  /** Running containers, sorted by name. */
  readonly members: readonly NetworkMember[];
}

export interface NetworksReport {
  /** Sorted by name. */
  readonly networks: readonly NetworkReport[];
  /** Networks that are left out, because there are too many. */
  readonly omitted: number;
}
