export const POLICY_LIMITS = {
  /** Each is matched with each container whenever containers change. */
  policies: 100,
  rules: 2_000,
  /** The kernel compares a new connection with each. */
  enforcedBlocks: 500,
  scopes: 50,
  types: 30,
  newNamesPerMinute: 10_000,
  keepMs: 7 * 86_400_000,
  /**
   * Addresses that are open for one container at a time, some 1 MB with their mirror; the one opened first makes room, and
   * connections to it stay. And in one transaction, in which each container has the same share: more take over 10 ms to write and
   * to apply, and the rest waits for the next one.
   */
  openAddresses: 4_096,
  openedAtOnce: 256,
  /**
   * Addresses and aliases in an answer to a container with a policy, each of which is judged for every query that waits for it. One
   * with more counts as unreadable. So many A records fill 64 KB; a chain of aliases has two records for each, with its DNAME.
   */
  answerAddresses: 4_096,
  answerAliases: 32,
  /** Refused addresses of one container that the kernel records, and for how long: what is more is refused unrecorded. Room for each takes 16 bytes at once. */
  refusedAddresses: 256,
  refusedMs: 86_400_000,
  /**
   * Questions of a container with a policy that leave the machine in a minute, for each rule that allows them; twice as many at once.
   * Each carries some bytes: what was chosen, and when. A name needs 4, for IPv4 and IPv6 where its addresses never live longer than
   * `recentMs`; the rest is for other types, options and TCP.
   */
  questionsPerMinute: 30,
  /** Questions for a wildcard in a minute: for thirty such names. Each new name that it allows in a minute adds two, for IPv4 and IPv6. */
  wildcardQuestionsPerMinute: 120,
  /**
   * How long the same query of a container with a policy gets the same answer, whatever its TTL, and an error of our own. So long
   * does Java keep an address, too: a program can do with that where addresses change without notice.
   */
  recentMs: 30_000,
  recentFailureMs: 5_000,
  /** So long after a question has left, the same one counts as waiting for its answer: it joins the one in flight, also with a short time budget. */
  joinedMs: 500,
  /** Memory for these answers of one container, some 300 of usual length; the one that was repeated least recently is dropped. */
  recentBytes: 128 * 1024,
  /** How long what a container has asked lately counts after it has ended: starting again gives it no more questions. And so many such containers. */
  formerMs: 120_000,
  former: 1_000,
  /** What is kept of networks to close at boot: the file, networks in it, and blocks of each. A daemon has some dozens. */
  closedNetworksBytes: 256 * 1024,
  closedNetworks: 1_000,
  closedNetworkBlocks: 16,
} as const;
