/**
 * Upstreams: every server that a container may ask, and what is known of it, as `GET /v1/upstreams` tells it.
 */

/** For which names of which containers a server is asked. */
export interface UpstreamUse {
  /** "." for every name. */
  readonly domain: string;
  readonly by: string | null;
  readonly containers: readonly string[];
}

export interface Upstream {
  readonly server: string;
  readonly address: string;
  readonly port: number;
  /** Where it is asked from; "docker" is Docker's own resolver behind us. */
  readonly from: "host" | "container" | "docker";
  /** In whose namespace it is asked, where that is not the host's: there it is another server. */
  readonly container: string | null;
  readonly isBackup: boolean;
  readonly uses: readonly UpstreamUse[];
  /** "unknown" as long as it has not been asked, and where nothing is remembered. */
  readonly state: "up" | "down" | "unknown";
  readonly since: string | null;
  readonly reason: string | null;
  /** How long answers by UDP take, and how far from that they usually are. */
  readonly rttMs: number | null;
  readonly deviationMs: number | null;
  readonly counters: {
    readonly queries: number;
    readonly answers: number;
    /** Answers that help nobody: SERVFAIL, REFUSED, or what cannot be read. */
    readonly useless: number;
    readonly unreachable: number;
  } | null;
  /** false while it is asked without, for it could not read it. */
  readonly edns: boolean | null;
  readonly isLooping: boolean | null;
  /** When it is asked again although it led back to us. */
  readonly loopsUntil: string | null;
}

export interface UpstreamReport {
  /** Without the switch failover nothing is remembered of servers. */
  readonly tracksServers: boolean;
  readonly upstreams: readonly Upstream[];
}
