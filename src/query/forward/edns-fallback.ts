/**
 * EdnsFallback: queries without EDNS and AD, for servers that reject them and for networks that drop them. EDNS and AD are what our
 * query for a shared reply has beside its question, because its client has asked with them.
 */
import { setU16, u16 } from "../../base/dns/bytes.ts";
import { AD, ADDITIONALS_AT, CODES_AT, RCODE_BITS } from "../../base/dns/header.ts";
import { DO, OPT_FLAGS_AT } from "../../base/dns/opt.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import type { Nameserver } from "../upstream/nameserver.ts";
import { queryWithClientOption } from "../wire/hop-options.ts";
import type { UpstreamReply } from "../wire/scrub.ts";
import type { UpstreamQueryPlan } from "./upstream-query-plan.ts";
import type { UpstreamCandidate } from "./server-order.ts";

const EDNS = 1;
export const AUTHENTIC = 2;
const TEXTS = ["", "EDNS", "AD", "EDNS and AD"];

/** From the end of the question to the flags of the OPT after it. */
const FLAGS_AFTER_QUESTION = 1 + OPT_FLAGS_AT;

type SentQuery = Pick<UpstreamQueryPlan, "message" | "questionEnd" | "isOptOurs">;

/** The EDNS option that tells the server about the client; undefined where the server gets what every server gets. */
function clientOptionTo(
  { clientOptions, nameservers }: UpstreamQueryPlan,
  nameserver: Nameserver,
): Uint8Array | undefined {
  return clientOptions?.[nameservers.indexOf(nameserver)];
}

/**
 * Which of EDNS and AD a query has that dns11 made; none for one that is passed on as it came. A server that is told about the client gets
 * no query without EDNS: otherwise a client could have the option left out by what it asks for, and would pass for another one.
 */
export function extrasOf(plan: UpstreamQueryPlan, message: Buffer, nameserver: Nameserver): number {
  if (!plan.isOptOurs) return 0;
  const hasAd = ((message[CODES_AT] as number) & AD) !== 0;
  const hasEdns = message.length > plan.questionEnd && clientOptionTo(plan, nameserver) === undefined;
  return (hasEdns ? EDNS : 0) | (hasAd ? AUTHENTIC : 0);
}

export function extrasText(extras: number): string {
  return TEXTS[extras] as string;
}

/** What the query for a server has and lacks, compared with those for others. */
export function formText(plan: UpstreamQueryPlan, { nameserver, omitted }: UpstreamCandidate): string {
  const added = (clientOptionTo(plan, nameserver)?.length ?? 0) === 0 ? "" : ", with the address of the container";
  return omitted === 0 ? added : `${added}, without ${extrasText(omitted)}`;
}

/** The query for a server, without what it does not answer, and with what it is told about the client. */
export function messageFor(plan: UpstreamQueryPlan, candidate: UpstreamCandidate, now: number): Buffer {
  const message = answeredPart(plan, candidate, now);
  const option = clientOptionTo(plan, candidate.nameserver);
  return option === undefined ? message : queryWithClientOption(message, plan.questionEnd, option);
}

function answeredPart(plan: UpstreamQueryPlan, candidate: UpstreamCandidate, now: number): Buffer {
  const { message, questionEnd } = plan;
  const extras = extrasOf(plan, message, candidate.nameserver);
  if (extras === 0) return message;
  const left = extras & (candidate.omitted | knownOmitted(plan, candidate.nameserver, now));
  if (left === 0) return message;
  const plainer = Buffer.from(message.subarray(0, (left & EDNS) === 0 ? message.length : questionEnd));
  if ((left & EDNS) !== 0) setU16(plainer, ADDITIONALS_AT, 0);
  if ((left & AUTHENTIC) !== 0) plainer[CODES_AT] = (plainer[CODES_AT] as number) & ~AD;
  return plainer;
}

/** What is left out of each query to the server. */
function knownOmitted(plan: UpstreamQueryPlan, nameserver: Nameserver, now: number): number {
  const isRejecting = nameserver.isRejecting(now, plan.clientNumber);
  const { edns, ad } = nameserver.silentTo;
  // A query for DNSSEC records needs its OPT, even if there was no answer to one earlier.
  const isWithoutOpt = !wantsDnssec(plan) && (isRejecting || edns.isKnown(now));
  return (isWithoutOpt ? EDNS : 0) | (isRejecting || ad.isKnown(now) ? AUTHENTIC : 0);
}

/** What the next query to a silent server leaves out. */
export function leftAfterSilence(plan: UpstreamQueryPlan, candidate: UpstreamCandidate, now: number): number {
  const { nameserver } = candidate;
  const extras = extrasOf(plan, plan.message, nameserver);
  if (extras === 0) return 0;
  const { edns, ad } = nameserver.silentTo;
  const sent = extras & ~(candidate.omitted | knownOmitted(plan, nameserver, now));
  let left = 0;
  if ((sent & EDNS) !== 0) {
    edns.recordSilence();
    // The reply to a slow name would lack its signatures.
    if (wantsDnssec(plan) ? edns.isRepeated || edns.isKnown(now) : edns.isSuspected(now)) left |= EDNS;
  }
  if ((sent & AUTHENTIC) !== 0) {
    ad.recordSilence();
    if (ad.isSuspected(now)) left |= AUTHENTIC;
  }
  return left;
}

/** Records that the server rejected what `sent` has beside its question: it was not silent. */
export function learnFromRejection(sent: number, { nameserver }: UpstreamCandidate, now: number): void {
  if ((sent & EDNS) !== 0) nameserver.silentTo.edns.recordAnswer(now);
}

/** Records from a reply to `sent` what the server answers, and what it was silent to. Returns what it is silent to from now on. */
export function learnFrom(sent: number, candidate: UpstreamCandidate, now: number): number {
  const { edns, ad } = candidate.nameserver.silentTo;
  if ((sent & EDNS) !== 0) edns.recordAnswer(now);
  if ((sent & AUTHENTIC) !== 0) ad.recordAnswer(now);
  const missing = candidate.silentTo & ~sent;
  if (missing === 0) return 0;
  const isEdns = (missing & EDNS) !== 0 && edns.recordOther(now);
  const isAd = (missing & AUTHENTIC) !== 0 && ad.recordOther(now);
  return (isEdns ? EDNS : 0) | (isAd ? AUTHENTIC : 0);
}

/** Whether the shared reply may lack what its clients have asked for, though the server may answer that at another time. */
export function lacksExtras(plan: UpstreamQueryPlan, sent: number, nameserver: Nameserver, now: number): boolean {
  const missing = extrasOf(plan, plan.message, nameserver) & ~sent;
  if (missing === 0) return false;
  const lacksSignatures = (missing & EDNS) !== 0 && wantsDnssec(plan);
  return lacksSignatures || (missing & ~knownOmitted(plan, nameserver, now) & AUTHENTIC) !== 0;
}

/**
 * Whether a reply rejects what `sent` had beside its question. A server that supports EDNS has an OPT in its error replies (RFC 6891,
 * 7). One that answers other queries with AD means something else.
 */
export function rejectsExtras(
  sent: number,
  { message, rcode }: UpstreamReply,
  { silentTo }: Nameserver,
  now: number,
): boolean {
  if (sent === 0) return false;
  const isUnread = rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP;
  const mayRejectAd = (sent & AUTHENTIC) !== 0 && (isUnread || rcode === RCODE.REFUSED);
  if (mayRejectAd && !silentTo.ad.isAnsweredLately(now)) return true;
  if ((sent & EDNS) === 0) return false;
  return rcode === RCODE.BADVERS || (isUnread && u16(message, ADDITIONALS_AT) === 0);
}

/**
 * Whether the response code is about the question. One that only an OPT can carry is about EDNS, cookies or signatures between a
 * server and the sender of the OPT, or it has no meaning; a client that sent no OPT could not even be told.
 */
export function concernsClient({ isOptOurs }: UpstreamQueryPlan, { rcode }: UpstreamReply): boolean {
  return rcode <= RCODE_BITS || (!isOptOurs && (rcode === RCODE.BADVERS || rcode === RCODE.BADCOOKIE));
}

function wantsDnssec({ message, questionEnd }: SentQuery): boolean {
  return ((message[questionEnd + FLAGS_AFTER_QUESTION] ?? 0) & DO) !== 0;
}
