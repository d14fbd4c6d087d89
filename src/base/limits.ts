/**
 * Limits of dns11, each with its reason and what happens when it is reached. Everything that can grow with what a
 * container or the network sends is limited here, or in the limits.ts of a feature, and nowhere else.
 */

/**
 * Limits of what people declare, in records and labels, as part of `LIMITS`.
 */
const DECLARED_LIMITS = {
  /**
   * Declared names in all files, records of each, and CNAMEs followed from one name to the next. A file with more is
   * refused, and the names of the file before it stay. A name takes 1 KB.
   */
  declaredNames: 100_000,
  declaredRecords: 100,
  declaredAliases: 8,
  /**
   * Files in the folder of records, and bytes of each; a folder with more, or a larger file, is refused. Of its mistakes
   * the first are logged and shown.
   */
  recordsFiles: 256,
  recordsProblems: 20,
  recordsFileBytes: 8 * 1024 * 1024,
  /**
   * Domains with servers of their own in a dnsmasq folder, and in a ConfigMap of kube-dns: every forwarded query is
   * matched with them. A folder with more is refused.
   */
  dnsmasqDomains: 256,

  /**
   * Domains, servers and characters in the label io.dns11.dns of one container. Each container has its own routing
   * table, which every forwarded query is matched with. The rest of a longer label is ignored and reported.
   */
  labelDomains: 64,
  labelServers: 16,
  /** Names in the label io.dns11.names, and wildcards among the aliases of an endpoint; the rest is ignored and reported. */
  labelNames: 64,
  /** Ports in the label io.dns11.ports, published ports, and exposed ports of one container; the rest is ignored. */
  labelPorts: 32,
  labelChars: 4_096,
  /**
   * Containers in one answer from a zone, more than a bridge has room for names in a UDP reply. Wildcards would
   * otherwise make every query as expensive as there are containers.
   */
  zoneAnswerMembers: 256,
  /** Services, and containers in them, that are visited for a query of a zone; the rest is left out. */
  zoneVisits: 2_048,
  /** Members of one other machine in an answer, so that no machine fills it alone. */
  machineAnswerMembers: 64,
  /** Entries of one other machine that are visited for an answer about a service: five for each of its members in the answer. */
  machineVisits: 320,
  /** Containers with one address: of those that other machines publish, any number may claim it. */
  zoneAddressMembers: 16,
  /**
   * Containers that are not running and are known, and whose names stay local. Of more those that ended first are forgotten, and their
   * names are forwarded, as in Docker.
   */
  stoppedContainers: 256,
  /** Objects of a store that are left out and whose problem is known; all are counted. */
  keyProblems: 1_024,
  /** Characters shown of a label; and of its problems. */
  labelCharsShown: 80,
  labelProblemChars: 240,
} as const;

/**
 * Limits of what Docker's resolver is asked first, as part of `LIMITS`.
 */
const ASKED_LIMITS = {
  /**
   * How long an answer of Docker's resolver is repeated, and for how long clients may keep it: two seconds together. It
   * knows of a change on another machine as soon as gossip does; nothing else would tell dns11.
   */
  askedFreshMs: 1_000,
  askedTtlSeconds: 1,
  /**
   * While Docker's resolver does not answer, its last answers are used for so long: longer than a restart or an upgrade
   * of dockerd takes. Services keep their addresses meanwhile, tasks may not. After that their names fail.
   */
  askedLastKnownMs: 600_000,
  /** How long one question waits for Docker's resolver; then it counts as away, for all questions of the next second. */
  askedWaitMs: 2_000,
  askedAwayMs: 1_000,
  /** Names of one container whose last answers are kept; the oldest gives way. */
  askedNamesKept: 512,
  /** Addresses of one answer; the rest is left out. */
  askedAddresses: 1_024,
  /** Questions that one query may need: a declared name can lead to several. */
  askedPasses: 10,
  /**
   * Names of one container that Docker's resolver does not know, each of which it logs. A container that asks for more
   * gets SERVFAIL for them, unless they were unknown within `askedFreshMs`.
   */
  askedUnknown: { burst: 40, perSecond: 20 },
} as const;

/**
 * How much is logged, as part of LIMITS. Containers and servers cause most lines, so each has its own room.
 */
const LOG_LIMITS = {
  /** A line with the same subject and text is logged once in this time, with the number of those held back. */
  logRepeatMs: 600_000,
  /** Different lines about one container or server in that time. */
  logLinesPerSubject: 4,
  /** How many subjects are tracked. */
  logSubjects: 4_096,
  /**
   * Lines with one text in so much time: the first line of each container or server, and beyond these so many of all and of
   * each. So none uses up the room of another.
   */
  logKindMs: 60_000,
  logOwnersPerKind: 400,
  logLinesPerKind: 100,
  logLinesPerOwner: 8,
  /** A server that goes down or comes back is logged so much sooner again: it concerns everybody. */
  logServerMs: 60_000,
  /** Names of failed lookups that are logged for one container, within `logRepeatMs`; and how much of a name. */
  logNames: 16,
  logNameChars: 300,
} as const;

export const LIMITS = {
  /** Packets answered in one batch. Beyond 64 a larger batch gains nothing and delays other sockets; the rest waits. */
  udpBatch: 64,
  /** Packets of a batch in which most queries are forwarded, each of which costs as much as several local answers. */
  udpBatchDeferred: 16,
  /**
   * After so long the rest of a batch waits for the next turn of the event loop; on a busy machine, after as much CPU time of this
   * thread again. Usual answers take microseconds.
   */
  udpSliceMs: 1,
  /**
   * Receive buffer for queries of one namespace that arrive while others are served, in the kernel's accounting (768
   * bytes and more for a short query; the kernel doubles this value): some 2,700 queries instead of 270. What does not
   * fit is lost, and the client retries after seconds.
   */
  udpReceiveBytes: 1024 * 1024,
  /** The longest UDP query that is read; a longer one is truncated, cannot be parsed, and gets FORMERR. */
  udpQueryBytes: 4096,
  /** What Docker reads of a UDP query, for the strict mode. */
  udpQueryBytesStrict: 512,
  /**
   * Steps, from label to label and along compression pointers, that parsing the names of a message may take for each of
   * its bytes; a message that takes more is malformed. Two bytes can point through 127 labels, so 64 KB would otherwise
   * block the event loop for 11 ms. Names as servers compress them take one or two steps a byte.
   */
  nameStepsPerByte: 8,
  /** CNAMEs followed from the query name to an answer; a reply with more is rejected. */
  scrubAliases: 16,
  /**
   * Records of a reply checked again before it is copied, in case nothing has to be dropped; valid replies have few.
   */
  scrubPlainRecords: 64,
  /** Replies shorter than this count as this long where the length limits the size of expanded names. */
  scrubOctetsMin: 1024,

  /**
   * TCP connections of clients: in total, of one container, and what each container always gets. A new connection
   * beyond that replaces the one that has been idle longest.
   */
  clientStreams: { whole: 16_384, each: 128, always: 8 },
  /**
   * Buffered bytes of a container's TCP connections, with clients and with upstreams: incomplete messages, and data not
   * sent yet. A connection that needs more is closed.
   */
  streamBytes: { whole: 128 * 1024 * 1024, each: 8 * 1024 * 1024, always: 256 * 1024 },
  /** Queries on one connection in strict mode, as in Docker; then it is closed, and what else has arrived gets no answer. */
  tcpQueriesStrict: 128,
  /** Concurrent queries of one connection; further ones stay in the socket. */
  tcpPipelined: 32,
  /** Time from connecting to the first complete query; then the connection is closed. */
  tcpFirstQueryMs: 2_000,
  /** Time for each further complete query, and for reading the answers; sending byte by byte extends neither. */
  tcpIdleMs: 8_000,
  /** Unsent answers of a connection, in bytes; beyond this its queries are no longer read. */
  tcpUnreadBytes: 256 * 1024,
  /**
   * Bytes of queries and replies on a container's connections in one turn of the event loop: 64 KB take up to a millisecond to
   * parse. Each message counts as so many more, one that is forwarded as many as several local answers, and a connection that
   * is accepted or read again as many as copying 64 KB takes.
   */
  streamBudget: { bytes: 64 * 1024, each: 512, deferred: 4096, read: 8192 },
  /** Bytes that arrive at once from a connection before others of the container are read; queries are shorter. */
  streamReadBytes: 4096,
  /** Connections in the kernel's accept queue. */
  tcpBacklog: 128,

  /** Forwarded queries of one container in flight, as in Docker; further ones wait. */
  forwardSlots: 1024,
  /** Forwarded queries of all containers in flight or waiting. One more is refused, unless its container has few. */
  forwardQueriesTotal: 8192,
  forwardQueriesAlways: 32,
  /** Their bytes: in total, of one container, and what each container always gets. One query may have 64 KB. */
  forwardBytes: { whole: 64 * 1024 * 1024, each: 4 * 1024 * 1024, always: 128 * 1024 },
  /** The limit of all containers where queries share sockets and cost only memory. */
  forwardQueriesShared: 32_768,
  /** The share of the process's descriptors for forwarded queries; the rest is for serving. */
  forwardDescriptorShare: 0.5,
  /** Queries of one container waiting for a slot; one more is refused at once. */
  forwardWaiting: 1024,
  /** How long a query waits for a slot, as in Docker, and with a time budget; then it is refused. */
  forwardWaitMs: 4_000,
  forwardWaitShortMs: 2_000,
  /** The time budget of a query in a KIND node: the forwarder of its pods (CoreDNS) times out after 2 s. */
  nodeBudgetMs: 1_900,
  /** Upstreams tried for one query, as in Docker. */
  forwardServers: 3,
  /** Time for one upstream to answer before the next one is tried. */
  forwardServerMs: 4_000,
  /** Time for Docker's own resolver, which tries up to three upstreams itself. */
  forwardDockerMs: 13_000,

  /**
   * Sockets to one upstream. Each query uses a random one, so that forging a reply takes guessing the port as well as
   * the id. More would not make that harder, but each is drained once in a turn of the event loop, and the replies from
   * all of them delay everything else.
   */
  upstreamSockets: 4,
  /** Packets that leave together when a callback of the event loop returns. */
  packetBatch: 64,
  /** Replies processed in one turn of the event loop; further ones wait in their sockets. */
  upstreamBatch: 64,
  /** A longer reply over UDP counts as several: one of 64 KB, which takes 7 ms at worst, as all replies of a turn. */
  upstreamReplyBytes: 1_024,
  /** Bytes that are sent in one turn of the event loop, of a reply that many queries wait for. */
  joinedReplyBytes: 64 * 1024,
  /** Sockets to upstreams in total; beyond this a query shares an existing one. */
  upstreamSocketsTotal: 4096,
  /** The share of the process's descriptors for sockets to upstreams. */
  upstreamDescriptorShare: 0.25,
  /**
   * Descriptors kept back for a server without a socket when all others are in use: three of the host, as many as a resolv.conf has,
   * and one of a container's own. Without them served containers would resolve nothing that is neither local nor cached.
   */
  upstreamDescriptorsKept: 4,
  /** The share reserved for TCP connections of clients when the number of containers that fit is computed. */
  connectionDescriptorShare: 0.25,
  /**
   * Descriptors that attaching leaves free, for the control socket, probes and files: without them no state is
   * reported.
   */
  descriptorsReserved: 32,
  /**
   * Descriptors that the kernel's table has room for from the start, 128 KB of it: three thousand containers. Beyond
   * that, or where the process may not have so many, a full table grows, and everything waits for 10 to 20 ms.
   */
  descriptorsPreallocated: 16_384,
  /** A machine with room for fewer containers gets a warning at startup. */
  containersExpected: 1_000,
  /** After so many queries, or so long, a socket is replaced by one on another port. */
  upstreamSocketQueries: 256,
  upstreamSocketMs: 10_000,
  /** Wrong replies on one socket before its queries are retried over TCP: they may be forged. */
  upstreamWrongReplies: 3,
  /**
   * TCP connections to upstreams, in total, of one container, and what each always gets; then existing ones are shared.
   */
  upstreamStreams: { whole: 1024, each: 32, always: 2 },
  /** Per container and upstream, and queries in flight on each: as many as servers accept on one connection. */
  upstreamStreamsPerServer: 4,
  upstreamPipelined: 64,
  /** Connections that a query is tried on, one after the other, where the upstream closes each after some reply. */
  upstreamStreamTries: 16,
  /** How long such a connection stays open after the last query or reply on it. */
  upstreamStreamIdleMs: 5_000,
  /**
   * New ones a second, for one container's queries and for all that use the host's upstreams. Each leaves a port in
   * TIME_WAIT for a minute on one side, and from 14,000 of those on the kernel takes milliseconds to find a free one.
   */
  upstreamConnects: { burst: 100, perSecond: 50 },
  upstreamConnectsOfHost: { burst: 400, perSecond: 150 },
  /**
   * Connections over TLS, which also count as TCP connections. A handshake costs the answering thread a millisecond: new ones a
   * second, as above, and how long one may take. Queries in flight on one connection before there is a second one, and how long it
   * may be silent until new queries go elsewhere, and until it is given up. An idle one is closed. Bytes of a handshake, and after
   * that beside answers (a record of 16 KB arrives as a whole). What is kept to resume, and for how long: a certificate counts for
   * so long after it was verified. How often the file of authorities is looked at, and its size.
   */
  tls: {
    connects: { burst: 16, perSecond: 8 },
    connectsOfHost: { burst: 100, perSecond: 50 },
    handshakeMs: 3_000,
    busy: 8,
    silentMs: 250,
    stuckMs: 5_000,
    idleMs: 10_000,
    greetingBytes: 64 * 1024,
    besideBytes: 20 * 1024,
    sessionBytes: 16 * 1024,
    sessionMs: 3_600_000,
    authoritiesMs: 60_000,
    authorityBytes: 4 * 1024 * 1024,
  },
  /** UDP sockets to a container's own upstreams; beyond that it shares those that it has. */
  upstreamSocketsOwn: { whole: 4096, each: 64, always: 8 },
  /** How often one upstream is tried for one query: packets get lost. */
  upstreamAttemptsPerServer: 3,
  /**
   * Queries of one container that one upstream has at the same time: at first, at least and at most; further ones wait
   * here. Answers within `quickMs` delay nobody, so the number grows. Otherwise a smaller one is tried as soon as answers take
   * longer than they need to, and every `tryEveryMs` in any case: half of the container's throughput for one answer's time. A query
   * that is late, by `lateMs` at least, does not count any more.
   */
  serverWindow: { first: 64, least: 8, most: 16_384, quickMs: 10, tryEveryMs: 2_000, lateMs: 100 },
  /** The most containers that metrics may be configured to list: beyond that there are too many series to store. */
  meteredContainersMax: 2_000,
  /** Upstreams that metrics list; all others are counted together. */
  meteredServers: 32,
  /** Upstreams of containers come and go, so they get this part: those of the machine always find room. */
  meteredContainersServers: 16,
  /** Upstreams used of one list; the rest of a longer list is ignored. */
  upstreamServers: 8,
  /** Containers that are followed from one whose servers are containers; a longer chain counts as a cycle. */
  upstreamChain: 32,
  /** Time from a truncated reply to the complete one over TCP; then the truncated one is passed on. */
  tcpFallbackMs: 1_500,
  /** When a second upstream is tried in parallel with a slow one: never earlier or later than these. */
  hedgeMsMin: 40,
  hedgeMsMax: 1_000,
  /** When a second upstream is tried beside one without measurements. */
  hedgeMsFirst: 300,
  /** Time from trying the last upstream of the list to retrying the first; then it doubles. */
  retransmitMs: 700,
  /** Consecutive timeouts, and the time they must span, before an upstream is down. */
  downAfterQueries: 3,
  downAfterMs: 1_000,
  /** That time, at most, for an upstream that usually takes longer. */
  downAfterMsSlow: 3_000,
  /**
   * Consecutive errors of sockets, each opened after the error before, until an upstream counts as unreachable and a query
   * goes on to the next one. An attacker who can send packets to the host can forge one, for ports that it guesses.
   */
  downAfterSocketErrors: 3,
  /**
   * The reply of a lower upstream waits for those before it in the list: until this time before the end of the time budget, when
   * the client still waits for it. How often it is checked whether one of them is down by now. And how long such a reply is
   * cached, at most, if one of them has not answered.
   */
  heldUntilMs: 400,
  heldCheckMs: 100,
  lowerReplySeconds: 30,
  /** How long until an upstream that is down gets a trial query, in addition to the one that another upstream gets. */
  trialMsFirst: 500,
  trialMsLast: 30_000,
  /** How long an upstream that rejects EDNS is queried without it. */
  withoutEdnsMs: 15 * 60_000,
  /** How long an upstream counts as silent to queries with EDNS, with AD or over UDP; and how many silences in a row show that. */
  silentMs: 15 * 60_000,
  silencesInRow: 3,
  /** How long an upstream that was silent over TCP is tried there only if no other one has the whole reply. */
  tcpBlockedMs: 60_000,
  /** How long an upstream with a forwarding loop is skipped, and how often loops are probed for. */
  loopMs: 60_000,
  loopProbeEveryMs: 30_000,
  /** Loops remembered for one container; a new one replaces the oldest. */
  loopsEach: 16,
  /** Time after which a stale reply is sent if there is no fresh one yet (RFC 8767, 5). */
  staleAfterMs: 1_800,
  /** The TTL of a stale reply, and how long after a failure it is sent at once. */
  staleTtlSeconds: 30,
  staleForMs: 30_000,
  /** How long a failure is cached after a timeout or while there is a stale answer, and after an error reply (RFC 9520). */
  failureTimeoutMs: 1_000,
  failureReplyMs: 5_000,
  /** Entries with this share of their TTL left and this many hits are prefetched, and how many at once. */
  prefetchShare: 0.1,
  prefetchHits: 2,
  prefetchesAtOnce: 256,

  /** How long `dns11 lookup` waits for each nameserver of a container, and how many it tries: as the C library does. */
  lookupMs: 5_000,
  lookupServers: 3,
  /**
   * Names of a search list that a lookup tries: as many as the C library once did, whatever the container configures.
   */
  lookupNames: 7,

  /** Time from sending a probe to its arrival; after that the rules do not work. */
  probeMs: 1_000,
  /** How often rules are verified without a reported change. */
  verifyEveryMs: 60_000,
  /**
   * How long a change in a namespace may wait for a lock there. After the first time the next container is served; after
   * the second the delay is reported, and charged to the container. Unlocked, a change takes 0.2 ms; a
   * blocklist of 200,000 addresses holds the lock for half a second.
   */
  jobSlowMs: 50,
  jobLateMs: 2_000,
  /** After so many late changes within this time the container is quarantined. */
  lateUntilQuarantine: 3,
  lateWindowMs: 600_000,
  /** Time limit for nft, which lists rules for a bug report; most of it waiting for another program's lock. */
  nftListMs: 3_000,
  /**
   * Foreign rules changed in a namespace: the probe waits for this quiet time, which is also the shortest time between
   * two probes.
   */
  verifyQuietMs: 50,
  verifyAtMostEveryMs: 1_000,
  /**
   * How long each of a repair's two steps waits for a verification: the client of the control socket waits 5 seconds.
   */
  repairMs: 2_200,
  /** Backoff of retries: starts at the first value and doubles up to the second. */
  retryFirstMs: 500,
  retryLastMs: 60_000,
  /** Namespaces verified at the same time; further ones wait. */
  verifyAtOnce: 64,
  /**
   * Size and CPU time limit of one netlink dump; a longer one is aborted. A container decides how long most of them are,
   * and no query is answered during that time: 20,000 rules take 68 ms.
   */
  dumpBytes: 4 * 1024 * 1024,
  dumpMs: 100,
  /** The size of a dump that is read in parts, between which queries are answered. */
  dumpBytesInParts: 64 * 1024 * 1024,
  /**
   * How often the links of containers on the host are read again: the kernel may drop reports of changes while there are
   * very many.
   */
  linksReadEveryMs: 60_000,
  /** Links of one container that are looked up. A process with NET_ADMIN there, without a user namespace, can make any number. */
  linksOfContainer: 256,
  /** So many rules are read for redirects of a port at once, which takes a millisecond; more in parts. */
  redirectRulesAtOnce: 100,
  /** The part of a dump that is read even on the busiest machine, however long it takes. */
  dumpBytesAtLeast: 256 * 1024,
  /** Time for finding rules that block queries; the result is only reported. */
  culpritMs: 1,
  culpritRulesAtLeast: 50,
  /**
   * Namespaces with more TCP sockets than this are not searched for connections to Docker's resolver: the kernel
   * compares every socket, which takes 5 ms for 20,000.
   */
  sparingSockets: 10_000,
  /** Such connections that the rules exempt: each is a rule or two that every query passes. */
  sparedConversations: 64,
  /** Rules and chains searched for what may block queries. The rest is skipped, which is reported. */
  culpritRules: 2_000,
  /** Chains that are named as what may block them. */
  culpritsNamed: 8,
  /**
   * The longest iptables-legacy table that is parsed, some 25,000 rules. A longer one is reported as skipped, and
   * counts as foreign. Reading this much takes 30 ms, its own program 80 ms.
   */
  xtableBytes: 4 * 1024 * 1024,
  /** How long tables of iptables-legacy may take to be read, most of it waiting for another program's lock. */
  xtablesMs: 500,
  /** How often a table that changes while it is read is read again. */
  xtableReads: 3,
  /**
   * The longest file read under /proc. The kernel generates them on each read, and a container may make them grow: each
   * socket adds 150 bytes and 1.4 us.
   */
  procBytes: 256 * 1024,

  /** Nameservers used of the host's resolv.conf, including those behind a stub resolver; the C library uses three. */
  hostServers: 8,
  /** Servers of a container's own resolv.conf that are captured and queried: C libraries read three. */
  capturedServers: 3,
  /** After a change of the host's resolv.conf: quiet time before it is read, and the longest wait for it. */
  hostFileQuietMs: 50,
  hostFileBusyMs: 300,
  /** How long a file without nameservers may be an incomplete write; then it is used as it is. */
  hostFileMissingMs: 500,
  /** How often it is read without a reported change; and how often where the kernel has no watch for it. */
  hostFilePollMs: 10_000,
  hostFileUnwatchedMs: 500,
  /** When files that were under a lease are read again; one inspect each, however often the lease is renewed. */
  unreadRetryMs: 10_000,

  /**
   * Memory for the query history of one container, from its first query on: 170 queries with names of usual length. A
   * new query replaces the oldest.
   */
  historyBytes: 8192,
  /** Histories retained after their container is gone, and for how long; then the oldest is dropped. */
  historiesLingering: 256,
  historyLingerMs: 60_000,
  /** A failure over TCP explains failures of names for so long. */
  tcpFailureMs: 10_000,
  /** Addresses that containers have given up, and for how long they are known: programs may still use them. */
  formerAddresses: 256,
  formerAddressMs: 600_000,
  /** Names that containers had until they were renamed. */
  formerNames: 256,
  /** Memory for the failing names of one container: some 40 like a container's and 18 others, which never evict those. */
  failureBytes: { local: 2_304, external: 1_152 },
  /** Containers with failing names, 4 MB together, and how long they are listed after their container is gone. */
  failureTables: 1_024,
  failureLingerMs: 600_000,
  /** Causes of failures, of all containers and of each. */
  recordedCauses: 4_096,
  causesPerContainer: 64,
  /**
   * One search for causes is limited to so many failures of a container, and to this time; the next search goes on. How often causes
   * are searched for, and again for the same failure.
   */
  causesAtOnce: 8,
  causesMs: 10,
  causesEveryMs: 500,
  causeAgainMs: 2_000,
  /** A name that has not failed for so long no longer counts as one that fails. */
  failureIdleMs: 300_000,
  /** How often followers of queries are sent new ones; those that were overwritten in between are counted. */
  tailEveryMs: 50,
  /** Queries sent to a follower at a time, shared among the containers; the rest is counted. */
  tailQueriesAtOnce: 512,
  /** Each container in a batch gets at least so many; the remaining containers come in the next batch. */
  tailQueriesEach: 8,
  /** Queries in one API response: the most recent. */
  queriesReturned: 10_000,

  ...DECLARED_LIMITS,
  ...ASKED_LIMITS,

  /**
   * Queries that wait because their link is not known to be a container's yet, and for how long. A container is known some 20 ms
   * after its start, on a busy machine later; its C library asks again after 2.5 s at the earliest.
   */
  listenerWaiting: 64,
  listenerWaitingMs: 2_000,
  /** Until an address of the host is tried again after a failure: its port may be free by then. */
  listenerRetryMs: 10_000,

  /** Bytes of an answer over UDP to another machine; longer ones need TCP, where a client's address cannot be forged. */
  lanUdpBytes: 512,
  /** TCP connections of one source; one more is closed at once. All sources of an entry have those of one container. */
  lanSourceStreams: 16,

  /** Nodes whose DNS servers are known, and how often a node is asked that has none yet. */
  clusterNodes: 256,
  clusterDnsPollMs: 2_000,

  /** Images whose labels are cached, so that each is inspected once; the least recently used one is dropped. */
  imagesCached: 256,
  /** Labels of one image, in characters; with more, all labels of its containers count as the image's. */
  imageLabelChars: 64 * 1024,
  /**
   * How long a new container waits for its image's labels before it is attached; then its labels count as the image's
   * until they are known. Its names resolve meanwhile. Engines take 0.5 ms, 8 ms with the containerd image store.
   */
  imageWaitMs: 1_000,

  /**
   * Bytes that are kept of what the engine says of one container, network or image: a name, of 10,000 aliases, takes 20. Of
   * one text: twice as long as a label may be. Of a whole list. What the author of an image writes has less.
   */
  engineValueBytes: 2 * 1024 * 1024,
  engineTextBytes: 8_192,
  engineReplyBytes: 64 * 1024 * 1024,
  /** Labels that are read of each container: those that dns11 knows, and those by which people have chosen containers. */
  labelKeys: 256,
  /** Ports that an image exposes, and that a container publishes: what is beyond is passed over. */
  exposedPorts: 1_024,
  /** A reply that goes on arriving may take so many times as long as the engine may be silent. */
  engineReadTimes: 6,

  /**
   * How long a container may be unknown before it is held, where it might have an enforced policy: the engine describes one
   * that starts after 11 to 40 ms.
   */
  factsLateMs: 250,

  /** Concurrent inspects: the engine works on one container at a time, and more only queue there. */
  inspectsAtOnce: 8,
  /** How long the engine may be silent in an inspect; it is retried later. */
  inspectMs: 10_000,
  /** How long the engine may be silent in a list, for which it visits every container. */
  listMs: 30_000,
  /** Zones of which a server remembers how it failed them. */
  failedZones: 64,
  /** How long a reply that came too late shows that a server is slow, and not away. */
  lateReplyMs: 60_000,
  /** How long the engine may be silent to requests that it usually answers at once, until dns11 goes on with what it knows without it. */
  engineSilentMs: 1_000,
  /**
   * How often the whole list is compared with the known state, in case an event was lost or the stream is dead; a reply
   * also shows that the engine is alive.
   */
  resyncEveryMs: 60_000,
  /** Names of probes that are remembered: one may arrive late. */
  sentProbes: 256,
  /** Containers that do not run and are kept as they were inspected, for their next start; each takes as much as a running one. */
  startingContainers: 64,
  /** How long a created container may take to start before its names are known as those of a stopped one. */
  startAfterCreateMs: 250,
  /** Backoff of reconnections to the engine. */
  engineRetryFirstMs: 100,
  engineRetryLastMs: 5_000,

  /**
   * How long the follower may be silent before it is considered dead: it compares lists every minute, and each of its calls
   * ends within half a minute.
   */
  followerSilentMs: 150_000,
  /** While there is no engine, the supervisor's start timeout is extended by this, each time before it expires. */
  startExtendMs: 30_000,
  /** How long after its start the process reports to its supervisor that it has started, even if it still waits for the engine. */
  engineStartWaitMs: 60_000,

  ...LOG_LIMITS,
  /** Queries of dns11's own that are announced in one container, and how long each is expected. */
  ownQueries: 64,
  ownQueryMs: 10_000,

  /**
   * Consecutive crashes of dns11 while it worked for one container, each so soon after the one before, until that
   * container is attached last and alone, and until it is quarantined.
   */
  crashWindowMs: 60_000,
  crashesUntilSuspect: 2,
  crashesUntilQuarantine: 3,
  crashesKept: 16,
  /** A quarantine lasts so long the first time and at most; and so many containers can be in one. */
  quarantineMs: 3_600_000,
  quarantineMsMax: 24 * 3_600_000,
  quarantinesKept: 256,
  /** How often a container that is attached last checks whether all others are. */
  suspectCheckMs: 50,
  /** Internal errors logged with their stacks; others are only counted. */
  internalErrorsLogged: 64,
  /** How long SIGTERM waits for queries in flight. */
  drainMs: 2_000,
  /**
   * How long descriptors of nf_tables outlive their table. Closing one at once waits until the kernel is done with what
   * was deleted, a grace period of 10 ms and more in which no query is answered; later it does not.
   */
  nftLingerMs: 1_000,
  /**
   * At the end, new queries no longer come to dns11; a namespace without a query for this long has been answered. A packet that has
   * passed the rules waits for the kernel where all processors are busy: after 10 ms two of 8,000 queries were still on
   * their way, and with 36 processes that wanted two processors one was lost after 50 ms.
   */
  drainQuietMs: 100,
  /** Garbage in the heap, in percent of what is in use, before it is collected. */
  heapGrowthPercent: 50,
  /** How much free memory the C library keeps. */
  freeMemoryBytes: 131_072,
  /**
   * Bytecode of functions that V8 inlines into one function. With 920, the default of V8, the answer to a name took 198
   * to 229 ns in 2026; with 4,000, 171 to 188; more changed nothing.
   */
  inlinedBytecode: 4_000,
  /**
   * Bytes of bytecode that a function runs before V8 optimizes it, while dns11 starts and then, which is V8's default. With that
   * from the start, attaching 1,000 containers at once took 1.17 times as long on two processors (2026-11-27): a quarter of all
   * processor time went into code that did not pay for its compilation. With 1,000,000 it took the same.
   */
  bytecodeUntilOptimized: { starting: 400_000, running: 67_584 },
  /** How often to check whether startup has finished: V8 optimizes sooner then, and what only startup needed can be given back. */
  startCheckMs: 500,
  /** How long after the end of startup that is done: the thread that attaches the kernel's programs has ended then. */
  giveBackAfterMs: 10_000,
  /** The heap that is collected then: nothing else is done for a millisecond for each megabyte. A larger one has been collected meanwhile. */
  collectedHeapBytes: 48 * 2 ** 20,
  /** Connections to the control socket: those of leases, and more than people use at once. */
  controlConnections: 96,
  /** Events that are kept: some 150 KB. Then the container or server with the most loses its oldest one. */
  events: 500,
  /** Samples of rates and servers: five minutes; and servers with samples. */
  historySamples: 60,
  historyEveryMs: 5_000,
  historyServers: 64,
  /** Minutes with how many queries there were: a day, some 25 KB. */
  historyMinutes: 1_440,
  /** Containers, networks and cache entries in one list, and rows and columns of the matrix; the rest is counted. */
  containersListed: 2_000,
  networksListed: 1_000,
  cacheEntriesListed: 500,
  matrixSide: 256,
  /** Names in one list: more than people read, some 2 MB of JSON. The rest is counted. */
  namesListed: 5_000,
  /** Connections to the HTTP listener, which any process on the machine can open; a new one replaces an idle one. */
  pageConnections: 32,
  /** The shortest time between two renderings of a page such as /metrics: with a thousand containers one takes 30 ms, in slices. */
  pageEveryMs: 100,
  /** Pages of probes; the shortest time between two queries of one, and how long one may take. */
  healthProbes: 32,
  healthProbeEveryMs: 1_000,
  healthProbeMs: 10_000,
  /** An event loop that is blocked for this long hangs, and the process is killed: where no keeper watches it, and where one does. */
  hangSeconds: 8,
  watchedHangSeconds: 60,

  /** Addresses of answers of which is kept whether they are the machine's: some 400 KB. With one more, all are looked up again. */
  hostAddresses: 4_096,
  /** The size of one message of a channel: the kernel passes up to 253 descriptors at once. */
  channelBytes: 16 * 1024,
  channelDescriptors: 240,
} as const;

/** The size of Node's pool of threads, for libuv: it reads this variable when the process starts. */
export const POOL_VARIABLE = "UV_THREADPOOL_SIZE";
/** This many namespaces, less the threads kept for files, may be locked at the same time before others wait. */
export const POOL_THREADS = 64;
