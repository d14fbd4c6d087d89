/**
 * Trip: a flight with all who wait for it. It is one object, because there may be thousands in the air, and whatever is
 * alive when the collector comes is what everybody waits for.
 */
import type { Client } from "../client/client.ts";
import { type CacheKey, keyHash } from "../cache/key.ts";
import type { ServerList } from "../upstream/nameserver-pool.ts";
import type { Nameserver } from "../upstream/nameserver.ts";
import type { Waiter } from "./waiter.ts";
import { UpstreamQuery } from "./upstream-query.ts";
import type { UpstreamQueryHooks, UpstreamQueryPlan } from "./upstream-query-plan.ts";

/** What is asked, for whom. */
export interface UpstreamRequest {
  readonly client: Client;
  readonly serverList: ServerList;
  /** Servers of the lane that lead back to the client. */
  readonly looping?: readonly Nameserver[];
  /** Undefined for a question of its own. */
  readonly key: CacheKey | undefined;
  readonly waiters: Waiter[];
  /** The query that goes out, and where its question ends. */
  readonly message: Buffer;
  readonly questionEnd: number;
  /** What is kept for the key is asked for anew. */
  readonly isRefresh?: boolean;
}

export class InFlightQuery extends UpstreamQuery {
  readonly request: UpstreamRequest;

  constructor(errand: UpstreamRequest, plan: UpstreamQueryPlan, hooks: UpstreamQueryHooks) {
    super(plan, hooks);
    this.request = errand;
  }
}

/** Under which what is asked is merged, and kept. */
export function cacheKeyOf({ deferred }: Waiter, { scope }: ServerList): CacheKey {
  const { name, nameHash, type, bits } = deferred;
  return { hash: keyHash(nameHash, type, bits, scope), name, type, bits, scope };
}

export function hasSignedWaiter(waiting: readonly Waiter[]): boolean {
  return waiting.some(({ deferred }) => deferred.signature !== undefined);
}
