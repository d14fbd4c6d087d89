export const ETCD_LIMITS = {
  /**
   * Records in memory, some 0.6 KB each. Further ones are left out and counted; a list of keys ends there, so that a
   * million of them take neither memory nor time.
   */
  records: 200_000,
  /** Bytes of one record. A larger one is skipped and named. */
  valueBytes: 16 * 1024,
  /** Records in one answer, and keys visited for what they point to: more fits into no UDP reply, and every one costs time. */
  answerRecords: 256,
  /** Keys visited for a query, and as many for its aliases; the rest is left out. */
  visits: 2_048,
  /** Leases whose duration is known; the one that was seen first is forgotten, and its records have the shortest TTL. */
  leases: 4_096,
  /** The TTL of records without one, and the bounds of one that follows from a lease: as in CoreDNS. */
  ttlSeconds: 300,
  leaseSecondsMin: 30,
  leaseSecondsMax: 86_400,
  /** Bytes of one reply of etcd, or of one message of a watch; a page of a list is made smaller until it fits. */
  replyBytes: 4 * 1024 * 1024,
  /** Keys on a page of a list: reading them takes 4 ms. */
  pageKeys: 250,
  /** Time for a reply, and for a stream to begin; then the next member is tried. */
  callMs: 3_000,
  /** Connections to one member. */
  connections: 4,
  /** When an idle connection is probed by the kernel. */
  keepAliveMs: 10_000,
  /** How often the member that is watched proves that it hears the others. */
  checkMs: 5_000,
  /** Backoff of reconnections to etcd. */
  retryFirstMs: 200,
  retryLastMs: 5_000,
  /** Members of services that one machine publishes, and keys that are read from one: the others are left out, and it is named. */
  machineMembers: 10_000,
  /** Keys below the name of this machine that are read: its own, and some of others, which stay. */
  ownKeys: 12_000,
  /** Machines whose members are read, so that no writer makes up more. */
  machines: 4_096,
  /** Bytes of a published member: twice what the longest can have. */
  memberBytes: 4_096,
  /** Changes in one transaction: etcd accepts 128 operations. */
  writeKeys: 100,
  /** Time between two transactions: changes that come faster are written together. */
  writeEveryMs: 50,
  /** The time between two lists of the own keys because another writer has changed one. */
  listAgainMs: 5_000,
  /** Renewals of a lease in the time that it is granted for. */
  renewals: 3,
  /** Time for withdrawing what is published before dns11 exits. */
  withdrawMs: 2_000,
  /** Bytes of the file with the authority's certificates, and of the file with the password. */
  fileBytes: 256 * 1024,
} as const;
