/**
 * RecentAnswers: what servers have answered one container lately. The same query is not forwarded again within that time, whatever the TTL
 * says, also where nothing is cached: so a program that only repeats a question, as most do, uses up none of the questions that its policy
 * lets leave the machine in a minute.
 */
import { setU32, u16, u32 } from "../../../base/dns/bytes.ts";
import { FLAGS_AT, HEADER_BYTES, SECTIONS, countAt } from "../../../base/dns/header.ts";
import { DATA_LENGTH_AT, RECORD_FIXED_BYTES, TTL_AT } from "../../../base/dns/record.ts";
import { TYPE } from "../../../base/dns/record-type.ts";
import type { AskedQuery, Transport } from "../../../query/query-policy.ts";
import { foldName } from "../../../query/wire/bare-query.ts";
import { resetNameSteps, skipName } from "../../../query/wire/name.ts";
import { POLICY_LIMITS } from "../model/limits.ts";

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
  /** In order of use, the least recent first. */
  readonly #answers = new Map<string, RecentAnswer>();
  #bytes = 0;
  /** When each question was forwarded that has no answer yet. */
  readonly #askedMs = new Map<string, number>();

  /** Notes that the question is being forwarded. */
  asked(key: string, nowMs: number): void {
    for (const [earlier, sinceMs] of this.#askedMs) {
      if (nowMs - sinceMs < POLICY_LIMITS.joinedMs) break;
      this.#askedMs.delete(earlier);
    }
    this.#askedMs.set(key, nowMs);
  }

  /** Whether the question was just forwarded and has no answer yet; then the same question waits for that answer. */
  isAsked(key: string, nowMs: number): boolean {
    const sinceMs = this.#askedMs.get(key);
    return sinceMs !== undefined && nowMs - sinceMs < POLICY_LIMITS.joinedMs;
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
    // A question whose answer is kept is forwarded only under a policy that just records.
    if (this.find(key, nowMs) !== undefined) return;
    this.#drop(key);
    const forMs = isFailure ? POLICY_LIMITS.recentFailureMs : POLICY_LIMITS.recentMs;
    this.#answers.set(key, { reply: Buffer.from(reply), isFailure, fromMs: nowMs, untilMs: nowMs + forMs });
    this.#bytes += bytesOf(key, reply);
    for (const oldest of this.#answers.keys()) {
      if (this.#bytes <= POLICY_LIMITS.recentBytes) break;
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

export function keyOfDeferred({ query, questionEnd }: AskedQuery, transport: Transport): string {
  return recentKey(query, questionEnd, transport === "tcp");
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
