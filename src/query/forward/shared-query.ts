/**
 * The upstream query that is sent for all clients with the same question, whichever was first and whatever its options.
 */
import { setU16 } from "../../base/dns/bytes.ts";
import { ADDITIONALS_AT, CODES_AT, FLAGS_AT, HEADER_BYTES, QUESTIONS_AT, RD } from "../../base/dns/header.ts";
import { OPT_BYTES, writeOpt } from "../../base/dns/opt.ts";
import { queryOf } from "../../base/dns/query.ts";
import { copyBytes } from "../../base/lib/bytes.ts";
import type { CacheKey } from "../cache/key.ts";
import { isDnssecOk, upstreamFlags } from "../cache/shareable.ts";

/** A query for the question of a cache key. */
export function queryForKey({ name, type }: CacheKey): Buffer {
  return queryOf({ labels: Buffer.from(name, "latin1"), type });
}

/** Header and question of a client's query, with our own OPT. */
export function queryFor(message: Buffer, questionEnd: number, bits: number): Buffer {
  // From the pool: a separate buffer would be one more object for the garbage collector.
  const query = Buffer.allocUnsafe(questionEnd + OPT_BYTES).fill(0);
  copyBytes(message, HEADER_BYTES, questionEnd, query, HEADER_BYTES);
  query[FLAGS_AT] = RD;
  query[CODES_AT] = upstreamFlags(bits);
  setU16(query, QUESTIONS_AT, 1);
  setU16(query, ADDITIONALS_AT, 1);
  writeOpt(query, questionEnd, 0, isDnssecOk(bits));
  return query;
}
