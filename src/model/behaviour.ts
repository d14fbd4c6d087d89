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
  /** UDP queries over 512 octets are read; Docker cuts them and answers FORMERR. */
  readonly readsLongQueries: boolean;
  /** Link aliases, network suffixes and reverse names compare without letter case, as container names always do. */
  readonly foldsCase: boolean;
  /** ip6.arpa is answered for addresses that begin or end with "::" too. */
  readonly reversesAllIpv6: boolean;
  /** A link whose target does not exist hides nobody else's name. */
  readonly skipsDanglingLinks: boolean;
  /** Owner names of our answers are compressed always, not only when they would not fit otherwise. */
  readonly compresses: boolean;
  /** Several queries of one TCP connection are worked on at once (RFC 7766). */
  readonly pipelines: boolean;
  readonly ttlSeconds: number;
}

export const STRICT: Behaviour = {
  answersAllTypes: false,
  hasNegativeSoa: false,
  speaksEdns: false,
  readsLongQueries: false,
  foldsCase: false,
  reversesAllIpv6: false,
  skipsDanglingLinks: false,
  compresses: false,
  pipelines: false,
  ttlSeconds: 600,
};

export const BETTER: Behaviour = {
  answersAllTypes: true,
  hasNegativeSoa: true,
  speaksEdns: true,
  readsLongQueries: true,
  foldsCase: true,
  reversesAllIpv6: true,
  skipsDanglingLinks: true,
  compresses: true,
  pipelines: true,
  ttlSeconds: 5,
};
