/**
 * Behaviour: the differences between what current Docker answers, bit for bit where a client can see it, and what dns11
 * answers by default. `STRICT_BEHAVIOUR` and `DEFAULT_BEHAVIOUR` are the two modes. How names are forwarded can be chosen apart
 * from the mode.
 */
export interface Behaviour extends ForwardingBehaviour {
  /** Other types of a local name get an empty answer instead of being forwarded. */
  readonly answersAllTypes: boolean;
  /** Our empty answers have an SOA, so that clients may cache them. */
  readonly hasNegativeSoa: boolean;
  /** OPT is answered as in RFC 6891; unknown versions get BADVERS. */
  readonly speaksEdns: boolean;
  /**
   * Invalid or unsupported queries get an error: NOTIFY, other classes than IN, compression pointers in the question.
   */
  readonly checksQueries: boolean;
  /** UDP queries over 512 bytes are read; Docker truncates them and answers FORMERR. */
  readonly readsLongQueries: boolean;
  /** Link aliases, network suffixes and reverse names ignore letter case, as container names always do. */
  readonly ignoresCase: boolean;
  /** ip6.arpa is also answered for addresses that begin or end with "::". */
  readonly reversesAllIpv6: boolean;
  /** A link whose target does not exist hides no other name. */
  readonly skipsDanglingLinks: boolean;
  /** An address on a network whose containers cannot reach each other is replaced by one of the same container on another network. */
  readonly prefersReachable: boolean;
  /** Owner names of our answers are always compressed, not only when they would not fit otherwise. */
  readonly compresses: boolean;
  /** Queries of one TCP connection are processed concurrently, and are as many as the client likes (RFC 7766). */
  readonly pipelines: boolean;
  /** Special-use names (RFC 6761: localhost, invalid, onion ...) are answered locally. */
  readonly answersSpecialNames: boolean;
  /** Of several containers with one name, those of the client's own Compose project are answered. */
  readonly prefersOwnProject: boolean;
  /** Changes of the host's resolv.conf apply at once, and not only to containers that start later. */
  readonly followsHost: boolean;
  readonly ttlSeconds: number;
}

/** How names that are not local are asked for. */
interface ForwardingBehaviour {
  /**
   * Upstreams are tried within one time budget, healthy ones first, a second one early, and from changing ports.
   * Without it they are tried as Docker does, and nothing below has an effect.
   */
  readonly failsOver: boolean;
  /** Replies of upstreams are cached for their TTL. */
  readonly caches: boolean;
  /** Popular cache entries are refreshed before they expire. */
  readonly prefetches: boolean;
  /** Expired cache entries are served while upstreams do not answer (RFC 8767). */
  readonly servesStale: boolean;
  /** Identical queries in flight are sent upstream once. */
  readonly coalesces: boolean;
  /** A second upstream is queried in parallel with one that is slower than usual. */
  readonly hedges: boolean;
  /** Truncated replies are retried over TCP; replies too large for the client are truncated. */
  readonly handlesTruncation: boolean;
  /** Replies are validated, and only records that follow from the question are used. */
  readonly checksReplies: boolean;
  /** Failures carry an extended error (RFC 8914). */
  readonly sendsExtendedErrors: boolean;
  /** Upstreams that form a forwarding loop are detected and skipped. */
  readonly guardsLoops: boolean;
}

/** What a reply to a plain query for a local name depends on, beside the name. */
export type ReplyStyle = Pick<Behaviour, "compresses" | "ignoresCase" | "speaksEdns">;

/** As Docker does, and as dns11 does by default. */
export const DOCKER_FORWARDING: ForwardingBehaviour = {
  failsOver: false,
  caches: false,
  prefetches: false,
  servesStale: false,
  coalesces: false,
  hedges: false,
  handlesTruncation: false,
  checksReplies: false,
  sendsExtendedErrors: false,
  guardsLoops: false,
};

export const DEFAULT_FORWARDING: ForwardingBehaviour = {
  failsOver: true,
  caches: true,
  prefetches: true,
  servesStale: true,
  coalesces: true,
  hedges: true,
  handlesTruncation: true,
  checksReplies: true,
  sendsExtendedErrors: true,
  guardsLoops: true,
};

export const STRICT_BEHAVIOUR: Behaviour = {
  ...DOCKER_FORWARDING,
  answersAllTypes: false,
  hasNegativeSoa: false,
  speaksEdns: false,
  checksQueries: false,
  readsLongQueries: false,
  ignoresCase: false,
  reversesAllIpv6: false,
  skipsDanglingLinks: false,
  prefersReachable: false,
  compresses: false,
  pipelines: false,
  answersSpecialNames: false,
  prefersOwnProject: false,
  followsHost: false,
  ttlSeconds: 600,
};

export const DEFAULT_BEHAVIOUR: Behaviour = {
  ...DEFAULT_FORWARDING,
  answersAllTypes: true,
  hasNegativeSoa: true,
  speaksEdns: true,
  checksQueries: true,
  readsLongQueries: true,
  ignoresCase: true,
  reversesAllIpv6: true,
  skipsDanglingLinks: true,
  prefersReachable: true,
  compresses: true,
  pipelines: true,
  answersSpecialNames: true,
  prefersOwnProject: true,
  followsHost: true,
  ttlSeconds: 5,
};
