/**
 * QueryReport: a query out of a history, as the control socket tells it.
 */
import type { QueryReport } from "../api/queries.ts";
import type { QueryRecord } from "../base/model/query-record.ts";
import { rcodeName } from "../base/dns/rcode.ts";
import { typeName } from "../base/dns/record-type.ts";

/** `wallMs` is the time at which the clock of `performance.now` began. */
export function queryReport(container: string, query: QueryRecord, wallMs: number): QueryReport {
  const { seq, atMs, name, type, rcode, answers, ttl, isStream, result: how, upstream, tookMs } = query;
  return {
    container,
    seq,
    time: new Date(wallMs + atMs).toISOString(),
    name,
    // Zero is no type that anybody asks for.
    type: type === 0 ? null : typeName(type),
    rcode: rcodeName(rcode),
    answers,
    ttl,
    transport: isStream ? "tcp" : "udp",
    result: how,
    upstream,
    ms: Math.round(tookMs * 1000) / 1000,
  };
}
