/**
 * SharedQuery: the query that goes out for all who ask the same, whoever asked first and however.
 */
import { setU16 } from "../../base/dns/bytes.ts";
import { ADDITIONALS_AT, CODES_AT, FLAGS_AT, HEADER_BYTES, QUESTIONS_AT, RD } from "../../base/dns/header.ts";
import { OPT_BYTES, writeOpt } from "../../base/dns/opt.ts";
import { queryOf } from "../../base/dns/query.ts";
import { copyBytes } from "../../base/lib/bytes.ts";
import type { CacheKey } from "../cache/key.ts";
import { isDnssecOk, upstreamFlags } from "../cache/shareable.ts";

/** What is asked for an entry anew. */
export function queryForKey({ name, type }: CacheKey): Buffer {
  return queryOf({ labels: Buffer.from(name, "latin1"), type });
}

/** Header and question of one of them, and an OPT of ours. */
export function queryFor(message: Buffer, questionEnd: number, bits: number): Buffer {
  // Of the pool: memory of its own would be one more thing for the collector to look after.
  const query = Buffer.allocUnsafe(questionEnd + OPT_BYTES).fill(0);
  copyBytes(message, HEADER_BYTES, questionEnd, query, HEADER_BYTES);
  query[FLAGS_AT] = RD;
  query[CODES_AT] = upstreamFlags(bits);
  setU16(query, QUESTIONS_AT, 1);
  setU16(query, ADDITIONALS_AT, 1);
  writeOpt(query, questionEnd, 0, isDnssecOk(bits));
  return query;
}
