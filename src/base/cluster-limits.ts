/**
 * Limits of what the API of a Kubernetes cluster holds and sends, as part of `LIMITS`.
 */
export const CLUSTER_LIMITS = {
  /** Services, and EndpointSlices with the endpoints in them, in memory: some 0.7 KB for each endpoint. Further ones are left out and counted. */
  clusterServices: 20_000,
  clusterSlices: 40_000,
  clusterEndpoints: 200_000,
  /** Endpoints read of one EndpointSlice, which is what the API allows; addresses of each; ports of a service or slice. */
  sliceEndpoints: 1_000,
  endpointAddresses: 8,
  clusterPorts: 100,
  /** Records in one answer: what is beyond fits into no UDP reply. */
  clusterAnswerRecords: 256,
  /** Endpoints visited for one host name or one address, which any number may have; the rest is left out. */
  clusterVisits: 1_024,
  /** The TTL of its names, as CoreDNS has it: endpoints come and go. */
  clusterTtlSeconds: 5,
  /** Objects on a page of a list: an EndpointSlice with 100 endpoints has 25 KB. */
  clusterPageObjects: 50,
  /**
   * Bytes of one reply, or of one change: parsing them takes some 10 ms, in which no query is answered. A page is made smaller until it
   * fits; the largest EndpointSlice has 300 KB.
   */
  clusterReplyBytes: 1024 * 1024,
  /** Time for a reply, and for a stream to begin. */
  clusterCallMs: 5_000,
  /** How long the API is asked to keep a stream of changes open, and how much longer it may take: it is away then. */
  clusterWatchSeconds: 60,
  clusterWatchGraceMs: 10_000,
  clusterRetryFirstMs: 200,
  clusterRetryLastMs: 10_000,
  /** Nodes whose DNS servers are known, and how often a node is asked that has none yet. */
  clusterNodes: 256,
  clusterDnsPollMs: 2_000,
  /** How long a start waits for the names. */
  clusterSettleMs: 5_000,
  /** Bytes of a kubeconfig, and of a file that it names. */
  clusterFileBytes: 1024 * 1024,
} as const;
