/**
 * Outcome: the result of one query. The code that decides a query fills it in; the client's counters, its history and
 * the meter read it. One object serves all queries that are answered at once and another one all that went upstream:
 * each is read before the next query starts, so nothing is allocated per query.
 */
import { u16, u32 } from "../../base/dns/bytes.ts";
import { ANSWERS_AT, isTruncated, rcodeOf } from "../../base/dns/header.ts";
import { POINTER, POINTER_BYTES } from "../../base/dns/name.ts";
import { QUESTION_FIXED_BYTES, TTL_AT } from "../../base/dns/record.ts";
import { LOCAL_SOURCE, type LocalSource } from "../../base/model/local-source.ts";
import { QUERY_RESULT, type QueryResult } from "../../base/model/query-record.ts";
import type { Server } from "../../base/model/view.ts";

/** How far a query has come. */
export const STAGE = {
  /** It was no query, and was dropped. */
  ignored: 0,
  /** It cannot be parsed, or its opcode is not supported. */
  malformed: 1,
  /** It can be parsed, but its EDNS is invalid. */
  refused: 2,
  /** Answered from local names or by a rule. */
  local: 3,
  /** Answered from the cache. */
  cache: 4,
  /** A server is asked first, or a rule delays the answer, which is another outcome. */
  deferred: 5,
  /** A deferred query has its answer. */
  completed: 6,
  /** Our own probe, not a query of a container. */
  probe: 7,
  /** Answered, or left without a reply, by the judge of its client. */
  ruled: 8,
  /** Refused by a policy. */
  denied: 9,
} as const;

/** What a policy says against a query. */
export interface QueryRefusal {
  /** For people. */
  readonly text: string;
  /** Otherwise it is only recorded. */
  readonly isEnforced: boolean;
}

/** What a client asked. */
interface ClientQuestion {
  readonly query: Uint8Array;
  readonly questionEnd: number;
  readonly type: number;
}

/** The parts of a deferred query that are needed here. */
interface CompletedQuery extends ClientQuestion {
  /** What the client asked, if that is the name of an alias and a server was asked for the alias's target. */
  readonly alias?: ClientQuestion | undefined;
  readonly rule?: string | undefined;
  readonly refusal?: QueryRefusal | undefined;
  readonly isOwn?: boolean | undefined;
}

const NO_BYTES = new Uint8Array(0);

export class Outcome {
  stage: number = STAGE.ignored;
  /** One of QUERY_RESULT. */
  result: number = QUERY_RESULT.local;
  /** It has its answer, which a policy holds back: the outcome that is recorded comes later, and counts no query. */
  isHeld = false;
  /** Where a local answer comes from. */
  source: LocalSource = LOCAL_SOURCE.rule;
  /** Including the upper bits from an OPT. */
  rcode = 0;
  type = 0;
  isStream = false;
  /** The query was for an IPv4 address, and the answer is empty by our own decision: to its client, a failure. */
  lacksAddress = false;
  /** dns11 itself sent it, as a test or to explain it: it counts nowhere as a query of the container. */
  isOwn = false;
  /** The judge's rule that decided it, or the policy that refused it, as text for people. */
  rule: string | undefined;
  /** A policy has refused it, or would have; it has been noted. */
  refusal: QueryRefusal | undefined;
  /**
   * The query, with the name in its original letter case, and the reply: both begin at `at` and have the name at the
   * same offset.
   */
  question: Uint8Array = NO_BYTES;
  reply: Uint8Array = NO_BYTES;
  at = 0;
  /** Length of the reply. */
  length = 0;
  /** Where the name ends; 0 if it could not be read. */
  nameEnd = 0;
  /** The server that answered, if the query went upstream. */
  server: Server | undefined;
  /** Arrival on the clock of `performance.now`, and duration; 0 for queries that are answered at once. */
  arrivedMs = 0;
  tookMs = 0;

  /** A query is about to be answered in place. */
  begin(block: Uint8Array, at: number, isStream: boolean, isOwn = false): void {
    this.stage = STAGE.ignored;
    this.result = QUERY_RESULT.local;
    this.source = LOCAL_SOURCE.rule;
    this.rcode = 0;
    this.type = 0;
    this.isStream = isStream;
    this.isOwn = isOwn;
    this.rule = this.refusal = undefined;
    this.lacksAddress = this.isHeld = false;
    this.question = this.reply = block;
    this.at = at;
    this.length = 0;
    this.nameEnd = 0;
  }

  /** A deferred query has its answer. */
  complete(deferred: CompletedQuery, reply: Uint8Array, result: QueryResult, server: Server | undefined): void {
    const { query, questionEnd, type } = deferred.alias ?? deferred;
    this.stage = STAGE.completed;
    this.result = QUERY_RESULT[result];
    this.type = type;
    this.question = query;
    this.reply = reply;
    this.length = reply.length;
    this.rcode = rcodeOf(reply);
    this.nameEnd = questionEnd - QUESTION_FIXED_BYTES;
    this.server = server;
    this.rule = deferred.rule;
    this.refusal = deferred.refusal;
    this.isOwn = deferred.isOwn === true;
  }

  /** A policy refuses it: the stage is set where it does. */
  refuse(refusal: QueryRefusal): void {
    this.refusal = refusal;
    if (!refusal.isEnforced) return;
    this.rule = refusal.text;
    this.result = QUERY_RESULT.denied;
  }

  /** Adds the transport and the duration. */
  setTimes(isStream: boolean, arrivedMs: number, nowMs: number): void {
    this.isStream = isStream;
    this.arrivedMs = arrivedMs;
    this.tookMs = nowMs - arrivedMs;
  }

  /** The reply is written. An rcode that needs an OPT has been set before. */
  end(length: number): void {
    this.length = length;
    if (this.rcode === 0) this.rcode = rcodeOf(this.reply, this.at);
  }

  /** Number of records in the answer section. */
  get answers(): number {
    return this.nameEnd === 0 ? 0 : u16(this.reply, this.at + ANSWERS_AT);
  }

  get isTruncated(): boolean {
    return isTruncated(this.reply, this.at);
  }

  /** The TTL of the first record; undefined if there is none or it cannot be read. */
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
