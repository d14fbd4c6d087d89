/**
 * RuledAnswer: what the judge of a client says about a query: nothing, an answer, none, or a delay. An answer is written over it.
 */
import { RCODE } from "../../base/dns/rcode.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import { NO_REPLY } from "../../base/model/query-record.ts";
import type { View } from "../../base/model/view.ts";
import type { Client } from "../client/client.ts";
import type { PolicedQuery } from "../gate/policed-query.ts";
import { DEFERRED, DROPPED, UNDECIDED } from "../ports.ts";
import { type Outcome, STAGE } from "../record/outcome.ts";
import type { Trace } from "../trace.ts";
import type { AnswerAction, FixedReply, QueryJudge } from "../verdict.ts";
import { declaredAnswer } from "../wire/declared-answer.ts";
import type { Question } from "../wire/question.ts";
import { failure, nameError, noData, truncated } from "../wire/reply.ts";
import { type DeclaredRecords, isUpstream } from "./declared-records.ts";
import type { LocalNames } from "./local-names.ts";

/** The query that is being answered, and who else has a say in it. */
interface RuledParts {
  readonly question: Question;
  readonly outcome: Outcome;
  readonly names: LocalNames;
  readonly policed: PolicedQuery;
}

export class RuledAnswer {
  readonly #behaviour: Behaviour;
  readonly #declared: DeclaredRecords;
  readonly #parts: RuledParts;
  /** It is set while a query is explained. */
  trace: Trace | undefined;
  /** Set if the query is held for so long. */
  delayMs: number | undefined;

  constructor(behaviour: Behaviour, declared: DeclaredRecords, parts: RuledParts) {
    this.#behaviour = behaviour;
    this.#declared = declared;
    this.#parts = parts;
  }

  /**
   * Returns the length of the reply, DROPPED, DEFERRED with the delay, or UNDECIDED without a verdict. `limit` is the longest
   * reply that the client accepts.
   */
  answer(judge: QueryJudge, client: Client, block: Buffer, limit: number, isStream: boolean): number {
    const { question, outcome, names, policed } = this.#parts;
    // The doctor looks at dns11; an explanation is of what the container gets.
    if (outcome.isOwn && this.trace === undefined && client.ownQueries.isExempt) return UNDECIDED;
    const verdict = judge.judge(question, isStream, outcome.isOwn);
    if (verdict === undefined) return UNDECIDED;
    const { action, text } = verdict;
    if (action.kind === "reply") {
      const refused = policed.answerOfTest(block, () => names.knows(question, client.view));
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
    const resolved = this.#declared.resolve(records, question.type, view);
    // Wherever its CNAME leads, nothing else is looked up for it.
    const found = isUpstream(resolved) ? [] : resolved.records;
    const whole = { links: [...links, ...resolved.links], records: found, rcode };
    return declaredAnswer(block, question, whole, limit, this.#behaviour);
  }
}
