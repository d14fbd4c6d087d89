/**
 * The upstream query that is sent for all clients with the same question, whatever the options of the first. It has EDNS and AD only
 * if that client has them: there are servers and networks that drop what is more than a question, and their clients ask without.
 */
import { setU16 } from "../../base/dns/bytes.ts";
import { AD, ADDITIONALS_AT, CODES_AT, FLAGS_AT, HEADER_BYTES, QUESTIONS_AT, RD } from "../../base/dns/header.ts";
import { OPT_BYTES, writeOpt } from "../../base/dns/opt.ts";
import { queryOf } from "../../base/dns/query.ts";
import { copyBytes } from "../../base/lib/bytes.ts";
import type { CacheKey } from "../cache/key.ts";
import { isDnssecOk, upstreamFlags } from "../cache/shareable.ts";

/** What the client's query has beside its question. */
interface Extras {
  readonly hasOpt: boolean;
  readonly isAuthentic: boolean;
}

/** A query for the question of a cache key. */
export function queryForKey({ name, type }: CacheKey): Buffer {
  return queryOf({ labels: Buffer.from(name, "latin1"), type });
}

/** Header and question of a client's query, with our own OPT in place of the client's. */
export function queryFor(message: Buffer, questionEnd: number, bits: number, { hasOpt, isAuthentic }: Extras): Buffer {
  // From the pool: a separate buffer would be one more object for the garbage collector.
  const query = Buffer.allocUnsafe(questionEnd + (hasOpt ? OPT_BYTES : 0)).fill(0, 0, HEADER_BYTES);
  copyBytes(message, HEADER_BYTES, questionEnd, query, HEADER_BYTES);
  query[FLAGS_AT] = RD;
  query[CODES_AT] = upstreamFlags(bits) | (isAuthentic ? AD : 0);
  setU16(query, QUESTIONS_AT, 1);
  if (!hasOpt) return query;
  setU16(query, ADDITIONALS_AT, 1);
  writeOpt(query, questionEnd, 0, isDnssecOk(bits));
  return query;
}
