/**
 * Outcome: what became of one query. Whoever decides it fills it in; the client's counters, its history and the meter read
 * it. There is one for all queries that are answered at once, and one for all that are delivered: each is read before the
 * next query is worked on, so nothing is made for a query.
 */
import { u16, u32 } from "../../base/dns/bytes.ts";
import { ANSWERS_AT, rcodeOf } from "../../base/dns/header.ts";
import { POINTER, POINTER_BYTES } from "../../base/dns/name.ts";
import { QUESTION_FIXED_BYTES, TTL_AT } from "../../base/dns/record.ts";
import { QUERY_RESULT, type QueryResult } from "../../base/model/query-record.ts";
import type { Server } from "../../base/model/view.ts";

/** How far a query has come. */
export const STAGE = {
  /** No query at all; nobody is told anything. */
  ignored: 0,
  /** It cannot be read, or asks for an operation that nobody serves. */
  unreadable: 1,
  /** It can be read, and its EDNS is wrong. */
  refused: 2,
  /** Answered from names, or by rule. */
  here: 3,
  /** Answered from what servers said before. */
  cache: 4,
  /** Somebody else has to be asked; what becomes of it is another outcome. */
  deferred: 5,
  /** A query that was deferred has its answer. */
  delivered: 6,
  /** A probe of our own, which no container has asked. */
  ours: 7,
} as const;

/** What a query that was deferred brings along. */
interface Delivered {
  readonly query: Uint8Array;
  readonly questionEnd: number;
  readonly type: number;
}

const NO_BYTES = new Uint8Array(0);

export class Outcome {
  stage: number = STAGE.ignored;
  /** One of HOW. */
  result: number = QUERY_RESULT.local;
  /** With the part of it that stands in an OPT. */
  rcode = 0;
  type = 0;
  isStream = false;
  /** Somebody has it explained: no container has asked it. */
  isExplained = false;
  /** The message in which the name stands as it was asked, and the reply: both begin at `at`, and have the name there. */
  question: Uint8Array = NO_BYTES;
  reply: Uint8Array = NO_BYTES;
  at = 0;
  /** Of the reply. */
  length = 0;
  /** Where the name ends; 0 where none could be read. */
  nameEnd = 0;
  /** Whose reply it was, where a server was asked. */
  server: Server | undefined;
  /** When the query came, on the clock of `performance.now`, and how long it took; 0 for what is answered at once. */
  arrivedMs = 0;
  tookMs = 0;

  /** A query is about to be answered where it lies. */
  begin(block: Uint8Array, at: number, isStream: boolean): void {
    this.stage = STAGE.ignored;
    this.result = QUERY_RESULT.local;
    this.rcode = 0;
    this.type = 0;
    this.isStream = isStream;
    this.question = this.reply = block;
    this.at = at;
    this.length = 0;
    this.nameEnd = 0;
  }

  /** A query that was deferred has its answer. */
  deliver(
    { query, questionEnd, type }: Delivered,
    reply: Uint8Array,
    result: QueryResult,
    server: Server | undefined,
  ): void {
    this.stage = STAGE.delivered;
    this.result = QUERY_RESULT[result];
    this.type = type;
    this.question = query;
    this.reply = reply;
    this.length = reply.length;
    this.rcode = rcodeOf(reply);
    this.nameEnd = questionEnd - QUESTION_FIXED_BYTES;
    this.server = server;
  }

  /** And how long that has taken. */
  setTimes(isStream: boolean, arrivedMs: number, nowMs: number): void {
    this.isStream = isStream;
    this.arrivedMs = arrivedMs;
    this.tookMs = nowMs - arrivedMs;
  }

  /** The reply is written; a code that takes an OPT to say is told before. */
  end(length: number): void {
    this.length = length;
    if (this.rcode === 0) this.rcode = rcodeOf(this.reply, this.at);
  }

  /** Records in the answer section. */
  get answers(): number {
    return this.nameEnd === 0 ? 0 : u16(this.reply, this.at + ANSWERS_AT);
  }

  /** The TTL of the first record; undefined where there is none, or where it cannot be read. */
  get ttl(): number | undefined {
    const { reply, nameEnd } = this;
    const end = this.at + this.length;
    let owner = nameEnd + QUESTION_FIXED_BYTES;
    while (owner < end) {
      const size = reply[owner] as number;
      if (size === 0 || size >= POINTER) {
        owner += size === 0 ? 1 : POINTER_BYTES;
        break;
      }
      owner += size + 1;
    }
    const ttlAt = owner + TTL_AT;
    return ttlAt + 4 > end ? undefined : u32(reply, ttlAt);
  }
}
