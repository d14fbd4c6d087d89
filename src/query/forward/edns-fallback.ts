/**
 * EdnsFallback: queries without EDNS, for servers that reject it.
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import { ADDITIONALS_AT, RCODE_BITS } from "../../base/dns/header.ts";
import { DO, OPT_BYTES, OPT_FLAGS_AT } from "../../base/dns/opt.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import type { UpstreamReply } from "../wire/upstream-reply.ts";
import type { UpstreamQueryPlan } from "./upstream-query-plan.ts";
import type { UpstreamCandidate } from "./server-order.ts";

/** From the end of the question to the flags of the OPT after it. */
const FLAGS_AFTER_QUESTION = 1 + OPT_FLAGS_AT;

/** The query for a server, without its OPT if the server rejects EDNS. */
export function messageFor(
  { message, isOptOurs, questionEnd, clientNumber }: UpstreamQueryPlan,
  { nameserver, isWithoutEdns }: UpstreamCandidate,
  now: number,
): Buffer {
  // A query for DNSSEC records needs its OPT, even if the server rejected EDNS earlier.
  const wantsDnssec = ((message[questionEnd + FLAGS_AFTER_QUESTION] ?? 0) & DO) !== 0;
  const isKnownWithoutEdns = !wantsDnssec && !nameserver.speaksEdns(now, clientNumber);
  if (!isOptOurs || !(isWithoutEdns || isKnownWithoutEdns)) return message;
  const withoutEdns = Buffer.from(message.subarray(0, message.length - OPT_BYTES));
  setU16(withoutEdns, ADDITIONALS_AT, 0);
  return withoutEdns;
}

/** Whether a reply rejects our OPT. A server that supports EDNS has an OPT in its error replies (RFC 6891, 7). */
export function rejectsEdns({ isOptOurs }: UpstreamQueryPlan, { message, rcode }: UpstreamReply): boolean {
  if (!isOptOurs) return false;
  const isRefusal = rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP || rcode === RCODE.BADVERS;
  return isRefusal && (rcode === RCODE.BADVERS || u16(message, ADDITIONALS_AT) === 0);
}

/**
 * Whether the response code is about the question. One that only an OPT can carry is about EDNS, cookies or signatures between a
 * server and the sender of the OPT, or it has no meaning; a client that sent no OPT could not even be told.
 */
export function concernsClient({ isOptOurs }: UpstreamQueryPlan, { rcode }: UpstreamReply): boolean {
  return rcode <= RCODE_BITS || (!isOptOurs && (rcode === RCODE.BADVERS || rcode === RCODE.BADCOOKIE));
}
