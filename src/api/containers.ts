/**
 * Containers: the containers of the engine, running or not, with what concerns their names, as returned by
 * `GET /v1/containers`.
 */
import type { ContainerStatus } from "./status.ts";

/** A container on a network. */
export interface ContainerNetwork {
  readonly network: string;
  /** Whether containers have names there: true for user-defined networks. */
  readonly hasNames: boolean;
  /** Its names there, in lower case. */
  readonly names: readonly string[];
  /** null while it is not running. */
  readonly ipv4: string | null;
  readonly ipv6: string | null;
}

/** The directives of a resolv.conf. */
export interface ResolvConfReport {
  readonly servers: readonly string[];
  readonly search: readonly string[];
  readonly options: readonly string[];
}

export interface ContainerReport {
  readonly id: string;
  readonly name: string;
  readonly project: string | null;
  readonly service: string | null;
  /** `running`, `paused`, or as Docker says: `exited`, `created`, `restarting`, `removing`, `dead`. */
  readonly state: string;
  readonly exitCode: number | null;
  /** The time at which it started or ended, if that is known. */
  readonly since: string | null;
  readonly health: "healthy" | "unhealthy" | "starting" | null;
  /** Whether dns11 serves it; null while it is not running. */
  readonly dns: ContainerStatus["state"] | null;
  /** Why dns11 does not serve it. */
  readonly code: string | null;
  readonly reason: string | null;
  /** The name of the container whose network namespace it uses, if that is not its own. */
  readonly sharesWith?: string;
  /** A container that uses the namespace of another one has none. */
  readonly networks: readonly ContainerNetwork[];
  /** The servers that its queries are forwarded to, as in `GET /v1/status`. */
  readonly upstreams: readonly string[];
  /** It is there only with the parameter `container`; null if it cannot be read. */
  readonly resolvConf?: ResolvConfReport | null;
}

export interface ContainersReport {
  /** Sorted by name. */
  readonly containers: readonly ContainerReport[];
  /** Containers that are left out, because there are too many. */
  readonly omitted: number;
}

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

/** A Compose service, or a container without one. */
export interface MatrixColumn {
  /** The name that is looked up, in lower case. */
  readonly name: string;
  readonly project: string | null;
  readonly service: string | null;
  /** The containers that the name is meant to lead to. */
  readonly containers: readonly string[];
  /** Running ones among them; with none, no container can resolve the name. */
  readonly running: number;
}

/** A running container. */
export interface MatrixRow {
  readonly container: string;
  readonly containerId: string;
  readonly project: string | null;
  readonly service: string | null;
  /** The order is that of the search. */
  readonly networks: readonly string[];
  /**
   * One for each column: how many of its containers the name resolves to; 0 if it does not resolve; -1 if it leads to something
   * else.
   */
  readonly cells: readonly number[];
}

export interface MatrixReport {
  readonly columns: readonly MatrixColumn[];
  readonly rows: readonly MatrixRow[];
  /** What is left out, because there are too many. */
  readonly omittedColumns: number;
  readonly omittedRows: number;
}
