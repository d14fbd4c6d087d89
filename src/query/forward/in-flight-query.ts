/**
 * InFlightQuery: an upstream query with its waiters. It is one object, because there may be thousands, and everything
 * that is alive when the garbage collector runs adds to its pause.
 */
import type { Client } from "../client/client.ts";
import { type CacheKey, keyHash } from "../cache/key.ts";
import type { ServerList } from "../upstream/nameserver-pool.ts";
import type { Nameserver } from "../upstream/nameserver.ts";
import type { Waiter } from "./waiter.ts";
import { UpstreamQuery } from "./upstream-query.ts";
import type { UpstreamQueryHooks, UpstreamQueryPlan } from "./upstream-query-plan.ts";

/** What is queried, and for which clients. */
export interface UpstreamRequest {
  readonly client: Client;
  readonly serverList: ServerList;
  /** Servers of the list that loop back to the client. */
  readonly looping?: readonly Nameserver[];
  /** Undefined for a query that cannot be shared. */
  readonly key: CacheKey | undefined;
  readonly waiters: Waiter[];
  /** The query to send, and where its question ends. */
  readonly message: Buffer;
  readonly questionEnd: number;
  /** It refreshes a cache entry. */
  readonly isRefresh?: boolean;
}

export class InFlightQuery extends UpstreamQuery {
  readonly request: UpstreamRequest;
  /** Among all that are in flight. */
  running = -1;

  constructor(request: UpstreamRequest, plan: UpstreamQueryPlan, hooks: UpstreamQueryHooks) {
    super(plan, hooks);
    this.request = request;
  }
}

/** The key for merging queries and caching replies. */
export function cacheKeyOf({ deferred }: Waiter, { scope }: ServerList): CacheKey {
  const { name, nameHash, type, bits } = deferred;
  return { hash: keyHash(nameHash, type, bits, scope), name, type, bits, scope };
}

export function hasSignedWaiter(waiters: readonly Waiter[]): boolean {
  return waiters.some(({ deferred }) => deferred.signature !== undefined);
}
