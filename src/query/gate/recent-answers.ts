/**
 * RecentAnswers: what servers have answered one container lately. The same query is not forwarded again within that time, whatever
 * its TTL says, also where nothing is cached: a program that only repeats a question, as most do, needs none of the questions that
 * its policy lets leave the machine in a minute.
 */
import { setU32, u16, u32, setU16 } from "../../base/dns/bytes.ts";
import {
  FLAGS_AT,
  HEADER_BYTES,
  SECTIONS,
  countAt,
  AD,
  CODES_AT,
  ID_AT,
  QUESTIONS_AT,
  idOf,
  UDP_BYTES_MIN,
} from "../../base/dns/header.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { DATA_LENGTH_AT, RECORD_FIXED_BYTES, TTL_AT, QUESTION_FIXED_BYTES } from "../../base/dns/record.ts";
import { LIMITS } from "../../base/limits.ts";
import type { DeferredQuery, Transport } from "../ports.ts";
import { resetNameSteps, skipName } from "../wire/name.ts";
import { randomInt } from "node:crypto";
import { FOLD } from "../../base/dns/name.ts";
import { OPT_SIZE_AT, OUR_UDP_BYTES } from "../../base/dns/opt.ts";

interface RecentAnswer {
  /** With the id and the letter case of the query that it was for. */
  readonly reply: Buffer;
  readonly isFailure: boolean;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** What an entry costs beside its bytes. */
const ENTRY_BYTES = 200;

export class RecentAnswers {
  /** The one that was repeated least recently comes first. */
  readonly #answers = new Map<string, RecentAnswer>();
  #bytes = 0;
  /** When questions left that have no answer yet. */
  readonly #askedMs = new Map<string, number>();

  /** The question leaves. */
  asked(key: string, nowMs: number): void {
    for (const [earlier, sinceMs] of this.#askedMs) {
      if (nowMs - sinceMs < LIMITS.policyJoinedMs) break;
      this.#askedMs.delete(earlier);
    }
    this.#askedMs.set(key, nowMs);
  }

  /** It has just left, and its answer is still to come: the same question waits for that one. */
  isAsked(key: string, nowMs: number): boolean {
    const sinceMs = this.#askedMs.get(key);
    return sinceMs !== undefined && nowMs - sinceMs < LIMITS.policyJoinedMs;
  }

  find(key: string, nowMs: number): RecentAnswer | undefined {
    const found = this.#answers.get(key);
    if (found === undefined || nowMs >= found.untilMs) return undefined;
    this.#answers.delete(key);
    this.#answers.set(key, found);
    return found;
  }

  /** Keeps the reply to a query. A failure is kept for less time: servers come back. */
  keep(key: string, reply: Uint8Array, isFailure: boolean, nowMs: number): void {
    this.#askedMs.delete(key);
    // One that is still kept has not been forwarded, but for a policy that only records.
    if (this.find(key, nowMs) !== undefined) return;
    this.#drop(key);
    const forMs = isFailure ? LIMITS.policyRecentFailureMs : LIMITS.policyRecentMs;
    this.#answers.set(key, { reply: Buffer.from(reply), isFailure, fromMs: nowMs, untilMs: nowMs + forMs });
    this.#bytes += bytesOf(key, reply);
    for (const oldest of this.#answers.keys()) {
      if (this.#bytes <= LIMITS.policyRecentBytes) break;
      this.#drop(oldest);
    }
  }

  #drop(key: string): void {
    const found = this.#answers.get(key);
    if (found === undefined) return;
    this.#answers.delete(key);
    this.#bytes -= bytesOf(key, found.reply);
  }
}

function bytesOf(key: string, reply: Uint8Array): number {
  return key.length + reply.length + ENTRY_BYTES;
}

/** The whole query but for its id and its letter case, and how it was sent: what its reply depends on. */
export function recentKey(query: Uint8Array, questionEnd: number, isStream: boolean): string {
  const bytes = Buffer.from(query);
  foldName(bytes, questionEnd);
  return `${isStream ? "t" : "u"}${bytes.toString("latin1", FLAGS_AT)}`;
}

export function keyOfDeferred({ query, questionEnd }: DeferredQuery, transport: Transport): string {
  return recentKey(query, questionEnd, transport === "tcp");
}

/** Whether a reply can be given again: it is one to this question. */
export function isRepeatable(reply: Uint8Array, { query, questionEnd }: DeferredQuery): boolean {
  return hasQuestionOf(reply, query, questionEnd);
}

/** Writes a recent answer over the query at `offset`, with the time that has passed taken off its TTLs. Returns its length. */
export function repeatAnswer(
  { reply, fromMs }: Pick<RecentAnswer, "reply" | "fromMs">,
  block: Buffer,
  offset: number,
  questionEnd: number,
  nowMs: number,
): number {
  reply.copy(block, offset + FLAGS_AT, FLAGS_AT, HEADER_BYTES);
  reply.copy(block, offset + questionEnd, questionEnd);
  const seconds = Math.floor((nowMs - fromMs) / 1000);
  const end = offset + reply.length;
  resetNameSteps(reply.length);
  let at = offset + questionEnd;
  for (let section = 0; section < SECTIONS; section++) {
    for (let left = u16(reply, countAt(section)); left > 0; left--) {
      const fixed = skipName(block, offset, at, end);
      const data = fixed + RECORD_FIXED_BYTES;
      // A server may leave the counts as they were when it truncates.
      if (fixed === -1 || data > end) return reply.length;
      if (u16(block, fixed) !== TYPE.OPT)
        setU32(block, fixed + TTL_AT, Math.max(0, u32(block, fixed + TTL_AT) - seconds));
      at = data + u16(block, fixed + DATA_LENGTH_AT);
    }
  }
  return reply.length;
}

const ID_END = 0x10000;

/**
 * What goes to servers in place of the query of a container whose policy is enforced. Whatever a program can choose
 * beside the name, the type and whether it wants DNSSEC records would carry data to whoever runs the servers of an allowed name:
 * letter case, the id, flags, and the size in the OPT.
 * The query to send: the client's own, unless a policy is enforced. Such a query is bare already.
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

type SentParts = Pick<DeferredQuery, "query" | "questionEnd" | "policy" | "hasOpt" | "udpSize">;

/**
 * Has the reply to `sentQuery` be one to the client's query, in place: with its id, its letter case, and AD only if it has asked
 * for that.
 */
export function restoreQuestion(
  reply: Buffer,
  { query, questionEnd, policy, isDnssecOk }: Pick<DeferredQuery, "query" | "questionEnd" | "policy" | "isDnssecOk">,
): void {
  if (policy?.isEnforcing !== true) return;
  setU16(reply, ID_AT, idOf(query));
  const wantsAuthentic = isDnssecOk || ((query[CODES_AT] as number) & AD) !== 0;
  if (!wantsAuthentic) reply[CODES_AT] = (reply[CODES_AT] as number) & ~AD;
  if (hasQuestionOf(reply, query, questionEnd)) query.copy(reply, HEADER_BYTES, HEADER_BYTES, questionEnd);
}

/** Whether a reply repeats the question of a query, in any letter case. */
function hasQuestionOf(reply: Uint8Array, query: Uint8Array, questionEnd: number): boolean {
  if (reply.length < questionEnd || u16(reply, QUESTIONS_AT) !== 1) return false;
  for (let at = HEADER_BYTES; at < questionEnd; at++) {
    const isName = at < questionEnd - QUESTION_FIXED_BYTES;
    const [one, other] = [reply[at] as number, query[at] as number];
    if (isName ? FOLD[one] !== FOLD[other] : one !== other) return false;
  }
  return true;
}

/** Writes the name of a question in lower case. A length byte is no letter. */
function foldName(message: Uint8Array, questionEnd: number): void {
  for (let at = HEADER_BYTES; at < questionEnd - QUESTION_FIXED_BYTES; at++)
    message[at] = FOLD[message[at] as number] as number;
}
