/**
 * UpstreamPolicy: settings of forwarding and of the cache, beside what a mode decides.
 */

/**
 * "adaptive": in order, unresponsive ones last, a second one early; "sequential": always in order; "parallel": all at
 * once.
 */
type ServerOrder = "adaptive" | "sequential" | "parallel";

/** What happens to names whose only servers are containers that cannot be queried: they fail, or the next route applies. */
export const MISSING_CONTAINER_SETTINGS = ["fail", "fallback"] as const;
export type MissingContainerSetting = (typeof MISSING_CONTAINER_SETTINGS)[number];

export interface ForwardPolicy {
  readonly order: ServerOrder;
  /** Each query begins with another server of the list. */
  readonly rotates: boolean;
  /** Queries use TCP from the start. */
  readonly usesTcp: boolean;
  /** Time for a complete answer, whatever is tried meanwhile. */
  readonly budgetMs: number;
  /** Queries of one container in flight. */
  readonly queriesMax: number;
  readonly missingContainer: MissingContainerSetting;
  /** A file with the certificate authorities that are trusted for servers; without it, those of the machine. */
  readonly tlsAuthorities: string | undefined;
}

export interface CachePolicy {
  readonly bytesMax: number;
  /** TTLs of replies are raised to the first value and lowered to the second. */
  readonly ttlSecondsMin: number;
  readonly ttlSecondsMax: number;
  /** Negative answers live as long as their SOA says, up to this; 0 caches none. */
  readonly negativeSecondsMax: number;
  /** How long a negative answer without SOA lives; RFC 2308 requires 0. */
  readonly negativeSecondsWithoutSoa: number;
  /** How long an expired entry may be served while upstreams do not answer; 0: never. */
  readonly staleSecondsMax: number;
}

/** Names that are never forwarded, whatever the routes say; a more specific route takes precedence. */
export interface LocalOnlyPolicy {
  /** Addresses of single-label names. */
  readonly keepsDotless: boolean;
  /** Reverse names of private addresses. */
  readonly keepsPrivateReverse: boolean;
}

export const FORWARD_DEFAULTS: ForwardPolicy = {
  order: "adaptive",
  rotates: false,
  usesTcp: false,
  budgetMs: 4_400,
  queriesMax: 1024,
  missingContainer: "fail",
  tlsAuthorities: undefined,
};

export const CACHE_DEFAULTS: CachePolicy = {
  bytesMax: 32 * 1024 * 1024,
  ttlSecondsMin: 0,
  ttlSecondsMax: 86_400,
  negativeSecondsMax: 3_600,
  negativeSecondsWithoutSoa: 0,
  staleSecondsMax: 86_400,
};

export const LOCAL_ONLY_DEFAULTS: LocalOnlyPolicy = { keepsDotless: false, keepsPrivateReverse: false };

export interface UpstreamPolicy {
  readonly forward: ForwardPolicy;
  readonly cache: CachePolicy;
  readonly localOnly: LocalOnlyPolicy;
}

export const UPSTREAM_DEFAULTS: UpstreamPolicy = {
  forward: FORWARD_DEFAULTS,
  cache: CACHE_DEFAULTS,
  localOnly: LOCAL_ONLY_DEFAULTS,
};
