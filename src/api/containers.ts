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
