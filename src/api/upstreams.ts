/**
 * Upstreams: every upstream server of the containers with its state, as returned by `GET /v1/upstreams`.
 */

/** The domain and the containers that a server is used for. */
export interface UpstreamUse {
  /** "." means all names. */
  readonly domain: string;
  /** Where it was configured, for people. */
  readonly by: string | null;
  readonly containers: readonly string[];
}

export interface Upstream {
  readonly server: string;
  readonly address: string;
  readonly port: number;
  /** Where it is queried from; "docker" means Docker's embedded DNS. */
  readonly from: "host" | "container" | "docker" | "node";
  /** The container whose namespace it is queried from, which makes it a different server; null for the host. */
  readonly container: string | null;
  /** It is queried only when the others cannot be reached. */
  readonly isBackup: boolean;
  readonly uses: readonly UpstreamUse[];
  /** "unknown" until its first query, and without failover. */
  readonly state: "up" | "down" | "unknown";
  /** Since when it is in this state, and why. */
  readonly since: string | null;
  readonly reason: string | null;
  /** The smoothed round-trip time over UDP and its mean deviation. */
  readonly rttMs: number | null;
  readonly deviationMs: number | null;
  readonly counters: {
    readonly queries: number;
    readonly answers: number;
    /** Error replies: SERVFAIL, REFUSED, or malformed. */
    readonly useless: number;
    readonly unreachable: number;
  } | null;
  /** false while it is queried without EDNS, because it does not support it. */
  readonly edns: boolean | null;
  /** It sends queries back to dns11. */
  readonly isLooping: boolean | null;
  /** The time at which a server that forwarded back to dns11 is tried again. */
  readonly loopsUntil: string | null;
}

/** A container that was named as a server and is not queried. */
interface MissingUpstream {
  /** As it was written. */
  readonly server: string;
  readonly reason: string;
  readonly uses: readonly UpstreamUse[];
}

export interface UpstreamReport {
  /** false with `forward.order: docker`: the state of servers is not tracked. */
  readonly tracksServers: boolean;
  readonly upstreams: readonly Upstream[];
  /** Absent: none. */
  readonly missing?: readonly MissingUpstream[];
}
