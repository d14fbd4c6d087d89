/**
 * How long a reply is cached: as long as its records allow, or for a negative answer as its SOA says (RFC 2308), within
 * the configured minimum and maximum. The TTLs in the reply are rewritten accordingly, so that clients count the same
 * time as we do.
 */
import { setU32, u32 } from "../../base/dns/bytes.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { ttlOf } from "../../base/dns/record.ts";
import type { CachePolicy } from "../../base/model/upstream-policy.ts";
import type { FreshReply } from "../wire/shared-reply.ts";

/** Seconds for which a reply may be cached; 0: not at all. `secondsMax` is a further limit, for some sources. */
export function applyCacheTtl(reply: FreshReply, policy: CachePolicy, secondsMax = Number.POSITIVE_INFINITY): number {
  const seconds = Math.min(cacheSeconds(reply, policy), secondsMax);
  const floor = Math.min(policy.ttlSecondsMin, secondsMax);
  const ceiling = reply.isNegative ? Math.max(seconds, floor) : Math.min(policy.ttlSecondsMax, secondsMax);
  const { bytes, start } = reply;
  for (const at of reply.ttlOffsets) {
    const ttl = Math.max(floor, Math.min(ceiling, ttlOf(u32(bytes, start + at))));
    setU32(bytes, start + at, ttl);
  }
  return seconds;
}

/** Why a reply is not cached, for `dns11 explain`. */
export function notCachedReason({ rcode, isTruncated, isNegative, soaSeconds }: FreshReply): string {
  if (isTruncated) return "the reply is truncated";
  if (rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN) return "the reply has an error code";
  if (isNegative && soaSeconds === undefined) return "a negative reply without an SOA record";
  return "its TTL is 0, or the settings of the cache exclude it";
}

function cacheSeconds(reply: FreshReply, policy: CachePolicy): number {
  const isAnswer = reply.rcode === RCODE.NOERROR || reply.rcode === RCODE.NXDOMAIN;
  if (!isAnswer || reply.isTruncated) return 0;
  const { ttlSecondsMin, ttlSecondsMax, negativeSecondsMax, negativeSecondsWithoutSoa } = policy;
  if (!reply.isNegative) return clamp(reply.ttlSeconds ?? 0, ttlSecondsMin, ttlSecondsMax);
  if (negativeSecondsMax === 0) return 0;
  const negative = reply.soaSeconds ?? negativeSecondsWithoutSoa;
  // A CNAME chain that ends in a negative answer is cached no longer than its CNAMEs.
  const chain = reply.answers > 0 ? (reply.ttlSeconds ?? 0) : Number.POSITIVE_INFINITY;
  const isReferral = reply.soaSeconds === undefined && negativeSecondsWithoutSoa === 0;
  return isReferral ? 0 : clamp(Math.min(negative, chain), ttlSecondsMin, negativeSecondsMax);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
