import { randomInt } from "node:crypto";
import { setU16, u16 } from "../../base/dns/bytes.ts";
import { AD, CODES_AT, HEADER_BYTES, ID_AT, QUESTIONS_AT, UDP_BYTES_MIN, idOf } from "../../base/dns/header.ts";
import { FOLD } from "../../base/dns/name.ts";
import { OPT_SIZE_AT, OUR_UDP_BYTES } from "../../base/dns/opt.ts";
import { QUESTION_FIXED_BYTES } from "../../base/dns/record.ts";
import type { AskedQuery } from "../query-policy.ts";

const ID_END = 0x10000;

/**
 * The query that is sent to servers: the client's own, unless a policy is enforced. Then whatever a program can choose beside the name, the
 * type and whether it wants DNSSEC records would carry data to whoever runs the servers of an allowed name: letter case, the id, flags, and
 * the size in the OPT. Options and other records have been removed by then.
 */
export function sentQuery({ query, questionEnd, policy, hasOpt, udpSize }: SentParts): Buffer {
  if (policy?.isEnforcing !== true) return query;
  const sent = Buffer.from(query);
  setU16(sent, ID_AT, randomInt(ID_END));
  // There are networks that drop what has AD, and such a query is not asked again without.
  sent[CODES_AT] = 0;
  foldName(sent, questionEnd);
  // The client can receive no more than it has said, and a reply of this size needs no fragments.
  if (hasOpt) setU16(sent, questionEnd + 1 + OPT_SIZE_AT, udpSize < OUR_UDP_BYTES ? UDP_BYTES_MIN : OUR_UDP_BYTES);
  return sent;
}

type SentParts = Pick<AskedQuery, "query" | "questionEnd" | "policy" | "hasOpt" | "udpSize">;

/**
 * Has the reply to `sentQuery` be one to the client's query, in place: with its id, its letter case, and AD only if it has asked
 * for that.
 */
export function restoreQuestion(
  reply: Buffer,
  { query, questionEnd, policy, isDnssecOk }: Pick<AskedQuery, "query" | "questionEnd" | "policy" | "isDnssecOk">,
): void {
  if (policy?.isEnforcing !== true) return;
  setU16(reply, ID_AT, idOf(query));
  const wantsAuthentic = isDnssecOk || ((query[CODES_AT] as number) & AD) !== 0;
  if (!wantsAuthentic) reply[CODES_AT] = (reply[CODES_AT] as number) & ~AD;
  if (hasQuestionOf(reply, query, questionEnd)) query.copy(reply, HEADER_BYTES, HEADER_BYTES, questionEnd);
}

/** Whether a reply repeats the question of a query, in any letter case. */
export function hasQuestionOf(reply: Uint8Array, query: Uint8Array, questionEnd: number): boolean {
  if (reply.length < questionEnd || u16(reply, QUESTIONS_AT) !== 1) return false;
  for (let at = HEADER_BYTES; at < questionEnd; at++) {
    const isName = at < questionEnd - QUESTION_FIXED_BYTES;
    const [one, other] = [reply[at] as number, query[at] as number];
    if (isName ? FOLD[one] !== FOLD[other] : one !== other) return false;
  }
  return true;
}

/** Writes the name of a question in lower case. A length byte is no letter. */
export function foldName(message: Uint8Array, questionEnd: number): void {
  for (let at = HEADER_BYTES; at < questionEnd - QUESTION_FIXED_BYTES; at++)
    message[at] = FOLD[message[at] as number] as number;
}
