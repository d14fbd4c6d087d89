/**
 * Behaviour: the switches between what current Docker answers, bit for bit where a client can see it, and what it
 * should answer. `STRICT` and `BETTER` are the two characters; a setting may turn one switch of either.
 */
export interface Behaviour {
  /** Other types of a name we hold get an empty answer of our own instead of going upstream. */
  readonly answersAllTypes: boolean;
  /** Empty answers of ours carry an SOA, so that clients may remember them. */
  readonly hasNegativeSoa: boolean;
  /** OPT is answered as RFC 6891 says, and unknown versions get BADVERS. */
  readonly speaksEdns: boolean;
  /** What only looks like a question for a name gets an error: NOTIFY, other classes than IN, pointers in the question. */
  readonly checksQueries: boolean;
  /** UDP queries over 512 octets are read; Docker cuts them and answers FORMERR. */
  readonly readsLongQueries: boolean;
  /** Link aliases, network suffixes and reverse names compare without letter case, as container names always do. */
  readonly ignoresCase: boolean;
  /** ip6.arpa is answered for addresses that begin or end with "::" too. */
  readonly reversesAllIpv6: boolean;
  /** A link whose target does not exist hides nobody else's name. */
  readonly skipsDanglingLinks: boolean;
  /** Owner names of our answers are compressed always, not only when they would not fit otherwise. */
  readonly compresses: boolean;
  /** Several queries of one TCP connection are worked on at once (RFC 7766). */
  readonly pipelines: boolean;
  /**
   * Servers are asked within one budget of time, the healthy ones first, a second one early, and never one and the same
   * socket for long. Without it they are asked as Docker asks them, and of the switches below only the last two have an
   * effect.
   */
  readonly failsOver: boolean;
  /** Replies of servers are kept for as long as they live. */
  readonly caches: boolean;
  /** A reply that is asked for often is asked anew before it is over. */
  readonly prefetches: boolean;
  /** A reply that is over stands in for servers that do not answer (RFC 8767). */
  readonly servesStale: boolean;
  /** Identical questions in flight are asked once. */
  readonly coalesces: boolean;
  /** A server that is slower than usual gets company before it has failed. */
  readonly hedges: boolean;
  /** Truncated replies are fetched whole, over TCP; and what is too large for whoever asked is truncated for it. */
  readonly handlesTruncation: boolean;
  /** Replies are read strictly, and only what follows from the question counts. */
  readonly checksReplies: boolean;
  /** Failures say why (RFC 8914). */
  readonly sendsExtendedErrors: boolean;
  /** A server that leads back to us is noticed and not asked. */
  readonly guardsLoops: boolean;
  /** Special names (RFC 6761: localhost, invalid, onion ...) are answered here. */
  readonly answersSpecialNames: boolean;
  /** Changes of the host's resolv.conf count at once, not only for containers that start later. */
  readonly followsHost: boolean;
  readonly ttlSeconds: number;
}

export const STRICT_BEHAVIOUR: Behaviour = {
  answersAllTypes: false,
  hasNegativeSoa: false,
  speaksEdns: false,
  checksQueries: false,
  readsLongQueries: false,
  ignoresCase: false,
  reversesAllIpv6: false,
  skipsDanglingLinks: false,
  compresses: false,
  pipelines: false,
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
  answersSpecialNames: false,
  followsHost: false,
  ttlSeconds: 600,
};

export const DEFAULT_BEHAVIOUR: Behaviour = {
  answersAllTypes: true,
  hasNegativeSoa: true,
  speaksEdns: true,
  checksQueries: true,
  readsLongQueries: true,
  ignoresCase: true,
  reversesAllIpv6: true,
  skipsDanglingLinks: true,
  compresses: true,
  pipelines: true,
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
  answersSpecialNames: true,
  followsHost: true,
  ttlSeconds: 5,
};
