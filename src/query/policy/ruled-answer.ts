/**
 * RuledAnswer: writes what a rule of a lease wants answered, over the query.
 */
import { RCODE } from "../../base/dns/rcode.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import { NO_REPLY } from "../../base/model/query-record.ts";
import type { View } from "../../base/model/view.ts";
import { DROPPED } from "../ports.ts";
import type { Outcome } from "../record/outcome.ts";
import type { FixedReply } from "../verdict/rule.ts";
import type { AnswerAction } from "../verdict/verdicts.ts";
import { declaredAnswer } from "../wire/declared-answer.ts";
import type { Question } from "../wire/question.ts";
import { failure, nameError, noData, truncated } from "../wire/reply.ts";
import { type DeclaredRecords, isUpstream } from "./declared-records.ts";

export class RuledAnswer {
  readonly #behaviour: Behaviour;
  readonly #declared: DeclaredRecords;

  constructor(behaviour: Behaviour, declared: DeclaredRecords) {
    this.#behaviour = behaviour;
    this.#declared = declared;
  }

  /** Returns the length of the reply, or DROPPED. `view` is the client's, `limit` the longest reply that it accepts. */
  write(action: AnswerAction, block: Buffer, question: Question, limit: number, view: View, outcome: Outcome): number {
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
