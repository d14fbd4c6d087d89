/**
 * Shares: what one container may hold of that which all containers share. Each bound and its reason stands in limits.ts.
 */
import { LIMITS } from "../../base/limits.ts";
import { Pool, type PoolLimits, type Share } from "../../base/lib/share.ts";

/** What one container holds. */
export interface Shares {
  /** Bytes of forwarded queries that have not been answered yet. */
  readonly queryBytes: Share;
  /** Bytes that its TCP connections have brought or are to take, with clients and with servers. */
  readonly streamBytes: Share;
  /** TCP connections of its clients. */
  readonly clients: Share;
  /** TCP connections to servers. */
  readonly upstreamStreams: Share;
  /** UDP sockets to servers of its own. */
  readonly upstreamSockets: Share;
}

export interface SharePools {
  readonly open: () => Shares;
}

/** `descriptors` is what the process may have of them. */
export function sharePools(descriptors: number): SharePools {
  const ofDescriptors = (limits: PoolLimits, share: number): PoolLimits => ({
    ...limits,
    whole: Math.min(limits.whole, Math.floor(descriptors * share)),
  });
  const pools = {
    queryBytes: new Pool(LIMITS.forwardBytes),
    streamBytes: new Pool(LIMITS.streamBytes),
    clients: new Pool(ofDescriptors(LIMITS.clientStreams, LIMITS.connectionDescriptorShare)),
    upstreamStreams: new Pool(ofDescriptors(LIMITS.upstreamStreams, LIMITS.upstreamDescriptorShare)),
    upstreamSockets: new Pool(ofDescriptors(LIMITS.upstreamSocketsOwn, LIMITS.upstreamDescriptorShare)),
  };
  return {
    open: () => ({
      queryBytes: pools.queryBytes.open(),
      streamBytes: pools.streamBytes.open(),
      clients: pools.clients.open(),
      upstreamStreams: pools.upstreamStreams.open(),
      upstreamSockets: pools.upstreamSockets.open(),
    }),
  };
}
