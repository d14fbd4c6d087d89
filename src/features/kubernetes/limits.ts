export const KUBERNETES_LIMITS = {
  /** Services, and EndpointSlices with the endpoints in them, in memory: some 0.7 KB for each endpoint. Further ones are left out and counted. */
  services: 20_000,
  slices: 40_000,
  endpoints: 200_000,
  /** Endpoints read of one EndpointSlice, which is what the API allows; addresses of each; ports of a service or slice. */
  sliceEndpoints: 1_000,
  endpointAddresses: 8,
  ports: 100,
  /** Records in one answer: what is beyond fits into no UDP reply. */
  answerRecords: 256,
  /** Endpoints visited for one host name or one address, which any number may have; the rest is left out. */
  visits: 1_024,
  /** The TTL of its names, as CoreDNS has it: endpoints come and go. */
  ttlSeconds: 5,
  /** Objects on a page of a list: an EndpointSlice with 100 endpoints has 25 KB. */
  pageObjects: 50,
  /**
   * Bytes of one reply, or of one change: parsing them takes some 10 ms, in which no query is answered. A page is made smaller until it
   * fits; the largest EndpointSlice has 300 KB.
   */
  replyBytes: 1024 * 1024,
  /** Time for a reply, and for a stream to begin. */
  callMs: 5_000,
  /** How long the API is asked to keep a stream of changes open, and how much longer it may take: it is away then. */
  watchSeconds: 60,
  watchGraceMs: 10_000,
  retryFirstMs: 200,
  retryLastMs: 10_000,
  /** How long a start waits for the names. */
  settleMs: 5_000,
  /** Bytes of a kubeconfig, and of a file that it names. */
  fileBytes: 1024 * 1024,
} as const;
