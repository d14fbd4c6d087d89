/**
 * QueryReport: a query of the history in the form of the API.
 */
import type { QueryReport } from "../../api/queries.ts";
import { NO_REPLY, type QueryRecord } from "../../base/model/query-record.ts";
import { rcodeName } from "../../base/dns/rcode.ts";
import { typeName } from "../../base/dns/record-type.ts";

/** `wallMs` is the time origin of `performance.now`. */
export function queryReport(container: string, query: QueryRecord, wallMs: number): QueryReport {
  const { seq, atMs, name, type, rcode, answers, addresses, ttl, isStream, result, source, upstream, rule, tookMs } =
    query;
  return {
    container,
    seq,
    time: new Date(wallMs + atMs).toISOString(),
    name,
    // Type zero means a malformed query.
    type: type === 0 ? null : typeName(type),
    rcode: rcode === NO_REPLY ? "NONE" : rcodeName(rcode),
    answers,
    addresses,
    ttl,
    transport: isStream ? "tcp" : "udp",
    result,
    source,
    upstream,
    ...(rule !== null && { rule }),
    ms: Math.round(tookMs * 1000) / 1000,
  };
}
