/**
 * Limits of what etcd holds and sends, as part of `LIMITS`.
 */
export const ETCD_LIMITS = {
  /**
   * Records in memory, some 0.6 KB each. Further ones are left out and counted; a list of keys ends there, so that a
   * million of them take neither memory nor time.
   */
  etcdRecords: 200_000,
  /** Bytes of one record. A larger one is skipped and named. */
  etcdValueBytes: 16 * 1024,
  /** Records in one answer, and keys visited for what they point to: more fits into no UDP reply, and every one costs time. */
  etcdAnswerRecords: 256,
  /** Keys visited for a query, and as many for its aliases; the rest is left out. */
  etcdVisits: 2_048,
  /** Leases whose duration is known; the one that was seen first is forgotten, and its records have the shortest TTL. */
  etcdLeases: 4_096,
  /** The TTL of records without one, and the bounds of one that follows from a lease: as in CoreDNS. */
  etcdTtlSeconds: 300,
  etcdLeaseSecondsMin: 30,
  etcdLeaseSecondsMax: 86_400,
  /** Bytes of one reply of etcd, or of one message of a watch; a page of a list is made smaller until it fits. */
  etcdReplyBytes: 4 * 1024 * 1024,
  /** Keys on a page of a list: reading them takes 4 ms. */
  etcdPageKeys: 250,
  /** Time for a reply, and for a stream to begin; then the next member is tried. */
  etcdCallMs: 3_000,
  /** Connections to one member. */
  etcdConnections: 4,
  /** When an idle connection is probed by the kernel. */
  etcdKeepAliveMs: 10_000,
  /** How often the member that is watched proves that it hears the others. */
  etcdCheckMs: 5_000,
  /** Backoff of reconnections to etcd. */
  etcdRetryFirstMs: 200,
  etcdRetryLastMs: 5_000,
  /** Members of services that one machine publishes, and keys that are read from one: the others are left out, and it is named. */
  etcdMachineMembers: 10_000,
  /** Keys below the name of this machine that are read: its own, and some of others, which stay. */
  etcdOwnKeys: 12_000,
  /** Machines whose members are read, so that no writer makes up more. */
  etcdMachines: 4_096,
  /** Bytes of a published member: twice what the longest can have. */
  etcdMemberBytes: 4_096,
  /** Changes in one transaction: etcd accepts 128 operations. */
  etcdWriteKeys: 100,
  /** Time between two transactions: changes that come faster are written together. */
  etcdWriteEveryMs: 50,
  /** The time between two lists of the own keys because another writer has changed one. */
  etcdListAgainMs: 5_000,
  /** Renewals of a lease in the time that it is granted for. */
  etcdRenewals: 3,
  /** Time for withdrawing what is published before dns11 exits. */
  etcdWithdrawMs: 2_000,
  /** Bytes of the file with the authority's certificates, and of the file with the password. */
  etcdFileBytes: 256 * 1024,
} as const;
