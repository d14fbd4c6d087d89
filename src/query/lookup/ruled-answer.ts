/**
 * RuledAnswer: what the judge of a client says about a query: nothing, an answer, none, or a delay. An answer is written over it.
 */
import { RCODE } from "../../base/dns/rcode.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import { NO_REPLY } from "../../base/model/query-record.ts";
import type { View } from "../../base/model/view.ts";
import type { Client } from "../client/client.ts";
import type { PolicedQuery } from "../policed-query.ts";
import { DEFERRED, DROPPED, UNDECIDED } from "../ports.ts";
import { type Outcome, STAGE } from "../record/outcome.ts";
import type { Trace } from "../trace.ts";
import type { AnswerAction, FixedReply, QueryJudge } from "../verdict.ts";
import { recordsAnswer } from "../wire/records-answer.ts";
import type { Question } from "../wire/question.ts";
import { failure, nameError, noData, truncated, addressAnswer, pointerAnswer } from "../wire/reply.ts";
import { type OwnRecords, isUpstream } from "./own-records.ts";
import type { LocalNames } from "./local-names.ts";
import { wireLabels } from "../../base/dns/name.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import type { ForwardingRule } from "./forwarding-rules.ts";

interface RuledParts {
  readonly question: Question;
  readonly outcome: Outcome;
  readonly names: LocalNames;
  readonly policed: PolicedQuery;
}

export class RuledAnswer {
  readonly #behaviour: Behaviour;
  readonly #ownRecords: OwnRecords;
  readonly #parts: RuledParts;
  /** Set while a query is explained. */
  trace: Trace | undefined;
  /** Set if the judge delays the query. */
  delayMs: number | undefined;

  constructor(behaviour: Behaviour, ownRecords: OwnRecords, parts: RuledParts) {
    this.#behaviour = behaviour;
    this.#ownRecords = ownRecords;
    this.#parts = parts;
  }

  /**
   * Returns the length of the reply, DROPPED, DEFERRED with the delay, or UNDECIDED without a verdict. `limit` is the longest
   * reply that the client accepts.
   */
  answer(judge: QueryJudge, client: Client, block: Buffer, limit: number, isStream: boolean): number {
    const { question, outcome, names, policed } = this.#parts;
    // An exempt query tests dns11 itself; an explanation is of what the container gets.
    if (outcome.isOwn && this.trace === undefined && client.ownQueries.isExempt) return UNDECIDED;
    const verdict = judge.judge(question, isStream, outcome.isOwn);
    if (verdict === undefined) return UNDECIDED;
    const { action, text } = verdict;
    if (action.kind === "reply") {
      const refused = policed.judged(block, () => names.knows(question, client.view));
      if (refused !== UNDECIDED) return refused;
    }
    outcome.rule = text;
    if (action.kind === "delay") {
      this.trace?.record("rules", text);
      this.delayMs = action.ms;
      outcome.stage = STAGE.deferred;
      return DEFERRED;
    }
    this.trace?.recordAnswer("rules", text);
    outcome.stage = STAGE.ruled;
    return this.#write(action, block, limit, client.view);
  }

  #write(action: AnswerAction, block: Buffer, limit: number, view: View): number {
    const { question, outcome } = this.#parts;
    switch (action.kind) {
      case "drop":
        outcome.rcode = NO_REPLY;
        return DROPPED;
      case "truncate":
        return truncated(block, question, this.#behaviour);
      case "rcode":
        return this.#code(block, question, action.rcode);
      case "reply":
        return this.#fixed(block, question, action.reply, limit, view);
    }
  }

  #code(block: Buffer, question: Question, rcode: number): number {
    if (rcode === RCODE.NXDOMAIN) return nameError(block, question, this.#behaviour);
    if (rcode === RCODE.NOERROR) return noData(block, question, this.#behaviour);
    return failure(block, question, rcode, this.#behaviour);
  }

  #fixed(block: Buffer, question: Question, reply: FixedReply, limit: number, view: View): number {
    const { rcode, links, records } = reply;
    if (rcode !== RCODE.NOERROR && links.length === 0) return this.#code(block, question, rcode);
    const resolved = this.#ownRecords.resolve(records, question.type, view);
    // Wherever its CNAME leads, nothing else is looked up for it.
    const found = isUpstream(resolved) ? [] : resolved.records;
    const whole = { links: [...links, ...resolved.links], records: found, rcode };
    return recordsAnswer(block, question, whole, limit, this.#behaviour);
  }
}

const LOOPBACK_V4 = Uint8Array.of(127, 0, 0, 1);
const LOOPBACK_V6 = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);
const LOCALHOST_TARGET = Buffer.concat([wireLabels("localhost") as Uint8Array, Buffer.of(0)]);

/** What explain says of each rule. A local domain is explained by its route. */
const WHY: Readonly<Record<Exclude<ForwardingRule, "local">, string>> = {
  refused: "nothing is forwarded for whoever asks here: forward is off for this entry of listen",
  ndots: "ndots is set, so address queries for names without a dot are not forwarded",
  localhost: "localhost and names below it resolve to loopback addresses (RFC 6761)",
  nonexistent: "invalid and onion do not exist in DNS (RFC 6761, RFC 7686)",
  resolver: "resolver.arpa: the resolver has no encrypted endpoints (RFC 9462)",
  "loopback-reverse": "the reverse name of a loopback address is localhost",
  "no-dot": "forward.domain-needed: no dot, so it is not forwarded",
  "private-reverse": "forward.bogus-priv: the reverse name of a private address, so it is not forwarded",
};

/** The answers to names that are not forwarded, each by the rule that keeps it. */
export class SpecialNames {
  readonly #behaviour: Behaviour;
  /** Set while a query is explained. */
  trace: Trace | undefined;

  constructor(behaviour: Behaviour) {
    this.#behaviour = behaviour;
  }

  /** Answers in place, over the query; returns the length of the reply. */
  answer(block: Buffer, question: Question, rule: ForwardingRule, limit: number): number {
    const behaviour = this.#behaviour;
    if (rule !== "local") this.trace?.recordAnswer("special", WHY[rule]);
    switch (rule) {
      case "localhost":
        return this.#localhost(block, question, limit);
      case "loopback-reverse":
        return pointerAnswer(block, question, LOCALHOST_TARGET, behaviour, limit);
      case "ndots":
      case "resolver":
        return noData(block, question, behaviour);
      case "refused":
        return failure(block, question, RCODE.REFUSED, behaviour);
      case "local":
      case "nonexistent":
      case "no-dot":
      case "private-reverse":
        return nameError(block, question, behaviour);
    }
  }

  #localhost(block: Buffer, question: Question, limit: number): number {
    const behaviour = this.#behaviour;
    const options = { limit, ttlSeconds: behaviour.ttlSeconds, isSorted: true, shuffle: inOrder, behaviour };
    if (question.type === TYPE.A) return addressAnswer(block, question, LOOPBACK_V4, 4, options);
    if (question.type === TYPE.AAAA) return addressAnswer(block, question, LOOPBACK_V6, 16, options);
    return noData(block, question, behaviour);
  }
}

function inOrder(count: number): Uint16Array {
  return Uint16Array.from({ length: count }, (_, i) => i);
}
