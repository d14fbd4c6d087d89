/**
 * Every bound of dns11, with its reason and what happens when it is reached. Whatever can grow by what a container or
 * the network sends is bounded here and nowhere else.
 */
export const LIMITS = {
  /**
   * Packets answered in one go. Past 64 the gain of a larger batch is gone and a neighbour's wait begins; the rest waits
   * in its socket for the next round.
   */
  udpBatch: 64,
  /**
   * The same where most questions have to be asked elsewhere, each of which costs as much as several answers that are
   * known here.
   */
  udpBatchDeferred: 16,
  /**
   * Room in the kernel for queries of one namespace that wait while we work for others, in its bookkeeping (768 bytes and
   * more for a short query, of which it keeps twice this): some 2,700 queries instead of 270. What finds no room is lost,
   * and asked again by its client after seconds.
   */
  udpReceiveBytes: 1024 * 1024,
  /** The longest UDP query read; a longer one is cut and, as it cannot be parsed, gets FORMERR. */
  udpQueryBytes: 4096,
  /** What Docker reads of a UDP query, for the strict character. */
  udpQueryBytesStrict: 512,
  /**
   * Steps, from label to label and along pointers, that reading the names of a message may take for each of its bytes; a
   * message that takes more counts as malformed. Two bytes can lead through 127 labels, so that 64 KB would otherwise
   * keep everybody waiting for 11 ms; names as servers compress them take one or two steps a byte.
   */
  nameStepsPerByte: 8,
  /** Aliases that are followed from the name that was asked to an answer; a reply with more is none. */
  scrubAliases: 16,
  /** Records of a reply that are looked at once more in the hope that there is nothing to drop; sound replies have few. */
  scrubPlainRecords: 64,
  /** A reply counts as this long where the names that it leads to are bounded by its length. */
  scrubOctetsMin: 1024,

  /**
   * Connections of clients: of all containers, of one, and what one always gets. The one that has been silent longest makes
   * room for a new one.
   */
  clientStreams: { whole: 16_384, each: 128, always: 8 },
  /**
   * Bytes that a container's TCP connections hold, with clients and with servers: read and not yet whole, or written and
   * not taken yet. The connection that would take more is closed.
   */
  streamBytes: { whole: 128 * 1024 * 1024, each: 8 * 1024 * 1024, always: 256 * 1024 },
  /** Queries on one connection, as Docker has it; then it is closed, and a client that has more opens another. */
  tcpQueries: 128,
  /** Queries of one connection worked on at once; the next ones stay in the socket. */
  tcpPipelined: 32,
  /** Time for the first query, whole, after the connection; then the connection is closed. */
  tcpFirstQueryMs: 2_000,
  /** Time for each further query, whole, and for reading the answers; slow dripping extends neither. */
  tcpIdleMs: 8_000,
  /** Unread answers of a connection, in bytes; at this its queries are no longer read. */
  tcpUnreadBytes: 256 * 1024,
  /** Connections the kernel keeps for us until we accept them. */
  tcpBacklog: 128,

  /** Forwarded queries of one container in flight, as Docker has it; the next ones wait. */
  forwardSlots: 1024,
  /** Forwarded queries of all containers in flight or waiting; one more is refused, unless its container has few. */
  forwardQueriesTotal: 8192,
  forwardQueriesAlways: 32,
  /** Their bytes: of all containers, of one, and what one always gets. One query may have 64 KB. */
  forwardBytes: { whole: 64 * 1024 * 1024, each: 4 * 1024 * 1024, always: 128 * 1024 },
  /** The same where queries share sockets, and cost memory alone. */
  forwardQueriesShared: 32_768,
  /** The share of its descriptors that the process lets forwarded queries have; the rest is for serving. */
  forwardDescriptorShare: 0.5,
  /** Queries of one container waiting for a slot; one more is refused at once. */
  forwardWaiting: 1024,
  /** How long a query waits for a slot, as Docker has it, and within one budget; then it is refused. */
  forwardWaitMs: 4_000,
  forwardWaitShortMs: 2_000,
  /** A query's budget in a KIND node: the forwarder of its pods (CoreDNS) gives up after 2 s. */
  nodeBudgetMs: 1_900,
  /** Nameservers asked for one query, as Docker has it. */
  forwardServers: 3,
  /** Time for one server to answer; then the next one is asked. */
  forwardServerMs: 4_000,
  /** Time for Docker's own resolver, which asks up to three servers itself. */
  forwardDockerMs: 13_000,

  /**
   * Sockets to one server. Each query draws one, so that whoever forges a reply has to guess the port as well as the id.
   * More of them would make that no harder, but each is drained once a round, and what all of them bring in one round is
   * what others wait for.
   */
  upstreamSockets: 4,
  /** Replies of servers that are worked off in one round of the event loop; the others wait in their sockets. */
  upstreamBatch: 64,
  /** Sockets to servers in all; past this a query shares one that is there. */
  upstreamSocketsTotal: 4096,
  /** The share of its descriptors that the process lets sockets to servers have. */
  upstreamDescriptorShare: 0.25,
  /** What is left to clients' TCP connections when it is counted for how many containers there is room. */
  connectionDescriptorShare: 0.25,
  /** What attaching leaves free of descriptors, for the control socket, probes and files: without it nobody could be told. */
  descriptorsReserved: 32,
  /**
   * Descriptors for which the kernel's table has room from the start, 128 KB of it: three thousand containers. Past that,
   * or where the process may not have so many, it grows when it is full, and everybody waits for 10 to 20 ms.
   */
  descriptorsPreallocated: 16_384,
  /** A machine with room for fewer containers is told at start. */
  containersExpected: 1_000,
  /** After so many queries, or so long, a socket is exchanged for one on another port. */
  upstreamSocketQueries: 256,
  upstreamSocketMs: 10_000,
  /** Wrong replies on one socket until what waits there is asked by TCP: somebody is guessing. */
  upstreamWrongReplies: 3,
  /** TCP connections to servers at once, of all containers and of one; then those that are there have to do. */
  upstreamStreams: { whole: 1024, each: 32, always: 2 },
  /** Of one container to one server, and the queries under way on each: as many as servers take on one connection. */
  upstreamStreamsPerServer: 4,
  upstreamPipelined: 64,
  /** On how many connections a query is asked, one after the other, where the server ends each behind some reply. */
  upstreamStreamTries: 16,
  /** How long such a connection is kept after the last query or reply on it. */
  upstreamStreamIdleMs: 5_000,
  /**
   * New ones in a second, from one container's queries and from all that ask the host's servers. Each leaves its port
   * taken for a minute on one of both sides, and from 14,000 of those on the kernel takes milliseconds to find a free one.
   */
  upstreamConnects: { burst: 100, perSecond: 50 },
  upstreamConnectsOfHost: { burst: 400, perSecond: 150 },
  /** UDP sockets to servers of a container's own; past that it shares those that it has. */
  upstreamSocketsOwn: { whole: 4096, each: 64, always: 8 },
  /** How often one server is asked for one query: packets get lost. */
  upstreamAttemptsPerServer: 3,
  /** Containers that metrics may be told to tell apart: more series than that nobody keeps. */
  meteredContainersMax: 2_000,
  /** Servers that metrics tell apart; what all others did is counted together. */
  meteredServers: 32,
  /** Of these, servers of containers' own, who come and go: the machine's always find a place. */
  meteredContainersServers: 16,
  /** Servers of one list that are used; the rest of a longer one is not. */
  upstreamServers: 8,
  /** From a truncated reply to the whole one, by TCP; then the truncated one is passed on. */
  tcpFallbackMs: 1_500,
  /** Company for a server that is slower than usual: never earlier than this, never later than that. */
  hedgeMsMin: 40,
  hedgeMsMax: 1_000,
  /** The same for a server that has not answered yet. */
  hedgeMsFirst: 300,
  /** From asking the last server of the list until the first is asked again; then it doubles. */
  retransmitMs: 700,
  /** Unanswered queries in a row, and the time they must span, after which a server counts as down. */
  downAfterQueries: 3,
  downAfterMs: 1_000,
  /** Useless answers (SERVFAIL, REFUSED) in a row after which a server is asked last. */
  downAfterErrors: 8,
  /** Of these, those that other containers than the first must have seen, where several ask that server. */
  downAfterErrorsOthers: 3,
  /** How long until a server that is down gets a query on trial, beside the one that another server gets. */
  trialMsFirst: 500,
  trialMsLast: 30_000,
  /** How long a server that takes no EDNS is asked without. */
  withoutEdnsMs: 15 * 60_000,
  /** How long a server that leads back to us is not asked, and how often that is looked into. */
  loopMs: 60_000,
  loopProbeEveryMs: 30_000,
  /** Loops of one container that are kept in mind; a new one takes the place of the oldest. */
  loopsEach: 16,
  /** Time after which a reply that is over goes out, if there is no better one yet (RFC 8767, 5). */
  staleAfterMs: 1_800,
  /** The TTL such a reply has, and for how long after a failure it goes out at once. */
  staleTtlSeconds: 30,
  staleForMs: 30_000,
  /** How long a name is not asked for again after servers were silent, and after they said that they failed (RFC 9520). */
  failureTimeoutMs: 1_000,
  failureReplyMs: 5_000,
  /** What has so much of its life left and was asked for so often is asked anew; whole, and so many at once. */
  prefetchShare: 0.1,
  prefetchHits: 2,
  prefetchesAtOnce: 256,

  /** How long somebody's lookup waits for each nameserver of a container, and how many it asks: as the C library does. */
  lookupMs: 5_000,
  lookupServers: 3,
  /** Names of one search list that a lookup tries: as many as the C library once did, whatever the container writes there. */
  lookupNames: 7,

  /** Time from a nonce query's departure to its arrival; then the rules do not work. */
  probeMs: 1_000,
  /** How often rules that nothing was heard of are verified again. */
  verifyEveryMs: 60_000,
  /** The same where the kernel does not tell of changes, as with iptables-legacy: so long may flushed rules be missing. */
  verifyUnwatchedEveryMs: 15_000,
  /** How long a program that reads or writes rules may take, most of it waiting for another one's lock. */
  iptablesMs: 3_000,
  iptablesLockSeconds: 2,
  /** After foreign rules changed in a namespace: quiet time before a probe, and the least time between two probes. */
  verifyQuietMs: 50,
  verifyAtMostEveryMs: 1_000,
  /** How long each of a repair's two steps waits for a verification: whoever asked for the repair waits 5 seconds. */
  repairMs: 2_200,
  /** Retries of what failed start here and double up to the second figure. */
  retryFirstMs: 500,
  retryLastMs: 60_000,
  /** How often a pod of our own making asks in a node, where nothing is wrong: each is a link that comes and goes there. */
  podProbeEveryMs: 300_000,
  /**
   * How often a node's switches are looked at for the way `loopback`: the kernel tells nobody of route_localnet. Reading one
   * takes 15 us. And how soon one is switched on once more that somebody keeps switching off.
   */
  localnetCheckMs: 2_000,
  localnetRepairEveryMs: 60_000,
  /** Namespaces verified at the same time; the next ones wait. */
  verifyAtOnce: 64,
  /**
   * Of what the kernel lists by netlink in answer to one question; a longer list, or one that takes longer, is broken off. A
   * container decides how long most of them are, and nobody is answered meanwhile: 20,000 rules take 68 ms.
   */
  dumpBytes: 4 * 1024 * 1024,
  dumpMs: 100,
  /** So much is read on the busiest machine, however long it takes. */
  dumpBytesAtLeast: 256 * 1024,
  /** How long may be spent on looking for what is in the way of queries, which is only told. */
  culpritMs: 1,
  culpritRulesAtLeast: 50,
  /**
   * TCP sockets of a namespace up to which its conversations with Docker's resolver are looked for: the kernel compares each
   * of them, which takes 5 ms for 20,000.
   */
  sparingSockets: 10_000,
  /** Of these conversations, those that are spared: each is a rule or two that every query passes. */
  sparedConversations: 64,
  /** Rules and chains looked at for what may be in the way; in a namespace with more, the rest is not, and it is said. */
  culpritRules: 2_000,
  /**
   * The longest table of the older iptables that is looked at, some 25,000 rules; it is said that a longer one is not, and
   * whatever stands in it counts as somebody else's. Reading this much takes 30 ms, its own program 80.
   */
  xtableBytes: 4 * 1024 * 1024,
  /** How often one that was changed between two steps of reading it is read again. */
  xtableReads: 3,
  /**
   * Of a file under /proc; what is longer is not read. The kernel writes them while it is asked, and a container may have
   * them grow: sockets, for one, make 150 bytes each and 1.4 us.
   */
  procBytes: 256 * 1024,

  /** Servers of the host's resolv.conf, with those behind a stub, that are used; the C library itself uses three. */
  hostServers: 8,
  /** After the host's resolv.conf was touched: quiet time before it is read, and the longest wait for quiet. */
  hostFileQuietMs: 50,
  hostFileBusyMs: 300,
  /** How long a file that names no server any more may be on its way to be a new one; then it is believed. */
  hostFileMissingMs: 500,
  /** How often it is read although nobody said that it changed; and how often where the kernel gave no watch. */
  hostFilePollMs: 10_000,
  hostFileUnwatchedMs: 500,
  /** When files are read again that somebody held a lease on; an inspect each, however often the lease is taken anew. */
  unreadRetryMs: 10_000,

  /**
   * Memory for the last queries of one container, from its first query on: 170 of them with names of usual length. The
   * next one takes the place of the oldest.
   */
  historyBytes: 8192,
  /** Containers that are gone whose last queries are still there, and for how long; then the oldest is forgotten. */
  historiesLingering: 256,
  historyLingerMs: 60_000,
  /** How often those who follow queries are told of new ones; what was overwritten in between is counted. */
  tailEveryMs: 50,
  /** Queries that one who follows is told of at a time, shared among the containers that asked; the rest is counted. */
  tailQueriesAtOnce: 512,
  tailQueriesEach: 8,
  /** The most queries that are told in one answer: the last ones. */
  queriesReturned: 10_000,
  /** Lines of the query log in a second; what is left out is counted. */
  queryLogLines: 500,

  /**
   * What the label io.dns11.dns of one container may say: domains, servers and characters. Each container has its own table
   * of routes, which every query that leaves is compared with; the rest of a longer label is left out and told.
   */
  labelDomains: 64,
  labelServers: 16,
  labelChars: 4_096,
  /** Of a label's text that is told; and of what is wrong with it. */
  labelCharsShown: 80,
  labelProblemChars: 240,
  /** Images whose labels are remembered, so that each is asked for once; the one that was used longest ago is forgotten. */
  imagesCached: 256,
  /** Labels of one image, in characters; with more of them all labels of its containers count as the image's. */
  imageLabelChars: 64 * 1024,
  /**
   * How long a container that is new waits for its image's labels before it is attached; then its labels count as the
   * image's until the answer is there. Its names are known meanwhile. Engines take half a millisecond, 8 ms where containerd
   * keeps the images.
   */
  imageWaitMs: 1_000,

  /** Inspects in flight: the engine works on one container at a time, and more only queue there. */
  inspectsAtOnce: 8,
  /** Time for one inspect; it is then asked again, later. */
  inspectMs: 10_000,
  /** Time for a list, for which the engine visits every container. */
  listMs: 30_000,
  /** How often the whole list is compared with what is known, in case an event was lost. */
  resyncEveryMs: 60_000,
  /** A stream of events that says nothing for so long may be dead: compare the list, which also proves the engine alive. */
  engineRetryFirstMs: 100,
  engineRetryLastMs: 5_000,

  /**
   * How long the follower may be silent until it counts as dead: it compares lists every minute, and each of its calls is
   * over in half a minute.
   */
  followerSilentMs: 150_000,
  /** By how much a supervisor is asked to be patient while there is no engine, again before it is over. */
  startExtendMs: 30_000,
  /** From the process's start: then it counts as started for its supervisor, and goes on waiting. */
  engineStartWaitMs: 60_000,

  /** A line about the same one with the same words is told once in this time, with the number of those held back. */
  logRepeatMs: 600_000,
  /** Lines about one container or server in that time that differ. */
  logLinesPerSubject: 4,
  /** How many of whom that is kept. */
  logSubjects: 4_096,
  /** Lines of one kind, about whomever, in so much time. */
  logLinesPerKind: 100,
  logKindMs: 60_000,

  /**
   * Deaths of dns11 in a row while it worked for one container, each so soon after the one before, until that container is
   * attached last and alone, and until it is left to Docker's resolver.
   */
  crashWindowMs: 60_000,
  crashesUntilSuspect: 2,
  crashesUntilQuarantine: 3,
  crashesKept: 16,
  /** For how long, the first time and at most; and how many containers are kept in mind. */
  quarantineMs: 3_600_000,
  quarantineMsMax: 24 * 3_600_000,
  quarantinesKept: 256,
  /** How often a container that is attached last looks whether all others are. */
  suspectCheckMs: 50,
  /** Defects of dns11 that are told with their stacks; of others only that they came. */
  internalErrorsLogged: 64,
  /** How long SIGTERM waits for queries that are being answered. */
  drainMs: 2_000,
  /**
   * How long descriptors of nf_tables outlive their table. Closing one at once waits for the kernel to be done with what
   * was deleted, a grace period of 10 ms and more in which no query is answered; by then it no longer waits.
   */
  nftLingerMs: 1_000,
  /**
   * New queries go elsewhere by then; a namespace that is silent for so long has been answered. A packet that has passed the
   * rules waits for the kernel where all processors are busy: after 10 ms two of 8,000 queries were still on their way.
   */
  drainQuietMs: 50,
  /** What may lie in the heap beside what is in use, in percent of that, before it is collected. */
  heapGrowthPercent: 50,
  /**
   * Bytecode of functions that V8 compiles as part of one other. Of 920, which it allows by itself, the answer to a name
   * took 198 to 229 ns in 2026; of 4,000, 171 to 188; more changed nothing.
   */
  inlinedBytecode: 4_000,
  /** How often it is looked whether starting is over, so that memory can be given back that only that needed. */
  trimCheckMs: 2_000,
  /** Connections to the control socket: more people than that do not look at once. */
  controlConnections: 32,
  /** Connections to the pages by TCP, of anybody on the machine; the next one gets the place of one that says nothing. */
  pageConnections: 32,
  /** A page for machines that watch machines is made no more often: at a thousand containers it takes milliseconds. */
  pageEveryMs: 100,
  /** An event loop that does not come round for so long is wedged, and the process is ended. */
  hangSeconds: 8,

  /** What one message of a channel may bring: the kernel passes 253 descriptors at once. */
  channelBytes: 16 * 1024,
  channelDescriptors: 240,
} as const;
