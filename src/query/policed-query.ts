import type { Behaviour } from "../base/model/behaviour.ts";
import type { LocalSource } from "../base/model/local-source.ts";
import type { DockerQuestion } from "../base/model/visible-names.ts";
import { DEFERRED, UNDECIDED } from "./ports.ts";
import type { AnswerEra, CurrentQuery, HeldAnswer, QueryPolicy } from "./query-policy.ts";
import type { Outcome } from "./record/outcome.ts";
import type { Trace } from "./trace.ts";
import type { AliasLink } from "./wire/alias.ts";
import type { Question } from "./wire/question.ts";

/** The query that is being answered, as the policy of its client sees it: each step of the answer asks here before it goes on. */
export class PolicedQuery implements CurrentQuery {
  readonly behaviour: Behaviour;
  readonly question: Question;
  readonly outcome: Outcome;
  readonly #era: AnswerEra;
  policy: QueryPolicy | undefined;
  limit = 0;
  /** It is set while a query is explained. */
  trace: Trace | undefined;
  held: HeldAnswer | undefined;

  constructor(behaviour: Behaviour, question: Question, outcome: Outcome, era: AnswerEra) {
    this.behaviour = behaviour;
    this.question = question;
    this.outcome = outcome;
    this.#era = era;
  }

  get era(): number {
    return this.#era.number;
  }

  begin(policy: QueryPolicy, block: Buffer, limit: number): number {
    this.policy = policy;
    this.held = undefined;
    this.limit = limit;
    return policy.begin(this, block);
  }

  /** A client without a policy sends it. */
  skip(): void {
    this.policy = this.held = undefined;
  }

  local(block: Buffer, source: LocalSource): number {
    return this.policy === undefined ? UNDECIDED : this.policy.local(this, block, source);
  }

  targets(block: Buffer, links: readonly AliasLink[]): number {
    return this.policy === undefined ? UNDECIDED : this.policy.targets(this, block, links);
  }

  ask(block: Buffer, ask: DockerQuestion): number {
    return this.policy === undefined ? UNDECIDED : this.policy.ask(this, block, ask);
  }

  judged(block: Buffer, isLocal: () => boolean): number {
    return this.policy === undefined ? UNDECIDED : this.policy.judged(this, block, isLocal);
  }

  forward(block: Buffer): number {
    return this.policy === undefined ? UNDECIDED : this.policy.forward(this, block);
  }

  leave(block: Buffer): number {
    return this.policy === undefined ? DEFERRED : this.policy.leave(this, block);
  }

  pass(block: Buffer, offset: number, length: number): number {
    return this.policy === undefined ? length : this.policy.pass(this, block, offset, length);
  }
}
