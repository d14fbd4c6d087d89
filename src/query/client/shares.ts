/**
 * Shares: how much one container may use of resources that all containers share. limits.ts has each limit and its
 * reason.
 */
import { LIMITS } from "../../base/limits.ts";
import { Pool, type PoolLimits, type Share } from "../../base/lib/share.ts";

/** What one container uses. */
export interface Shares {
  /** Bytes of forwarded queries without an answer yet. */
  readonly queryBytes: Share;
  /** Bytes buffered for its TCP connections, in both directions, with clients and with servers. */
  readonly streamBytes: Share;
  /** TCP connections of its clients. */
  readonly clients: Share;
  /** TCP connections to servers. */
  readonly upstreamStreams: Share;
  /** UDP sockets to its own servers. */
  readonly upstreamSockets: Share;
}

export interface SharePools {
  readonly open: () => Shares;
}

/** `descriptors`: how many file descriptors the process may open. */
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
