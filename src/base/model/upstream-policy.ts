/**
 * How servers are asked and how long their answers are kept: what settings may change beside the switches of a character.
 */

/** "adaptive": in order, those that do not answer last, a second one early; "sequential": in order, always; "parallel": all at once. */
export const SERVER_ORDERS = ["adaptive", "sequential", "parallel"] as const;
export type ServerOrder = (typeof SERVER_ORDERS)[number];

export interface ForwardPolicy {
  readonly order: ServerOrder;
  /** Each query begins with another server of the list. */
  readonly rotates: boolean;
  /** Servers are asked by TCP from the start. */
  readonly usesTcp: boolean;
  /** Time for a whole answer, whatever is tried meanwhile. */
  readonly budgetMs: number;
  /** Queries of one container in flight. */
  readonly queriesMax: number;
}

export interface CachePolicy {
  readonly bytesMax: number;
  /** What servers say of how long a reply lives is raised to this, and cut to that. */
  readonly ttlSecondsMin: number;
  readonly ttlSecondsMax: number;
  /** Denials live as long as their SOA says, cut to this; 0 keeps none. */
  readonly negativeSecondsMax: number;
  /** How long a denial without SOA lives; RFC 2308 wants 0. */
  readonly negativeSecondsWithoutSoa: number;
  /** How long a reply that is over may still stand in for servers that do not answer; 0: never. */
  readonly staleSecondsMax: number;
}

/** Names that are not asked outside whatever the routes say; a route of their own goes before. */
export interface LocalOnlyPolicy {
  /** Addresses of names without a dot. */
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

/** All of it. */
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
