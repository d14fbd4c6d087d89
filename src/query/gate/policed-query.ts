/**
 * PolicedQuery: the query that is being answered, as the policies of its container see it. Each step of the answer asks here before
 * it goes on. A container without a policy is asked for in one branch for each step.
 */
import type { Behaviour } from "../../base/model/behaviour.ts";
import { FOREIGN_SOURCES, type LocalSource } from "../../base/model/local-source.ts";
import { QUERY_RESULT, QUERY_RESULTS } from "../../base/model/query-record.ts";
import { StoredName } from "../../base/model/label-table.ts";
import type { QuestionName, DockerAsk } from "../../base/model/visible-names.ts";
import { RCODE } from "../../base/dns/rcode.ts";
import { isMetaType } from "../../base/dns/record-type.ts";
import type { NamespacePolicy } from "../../policy/judge/namespace-policy.ts";
import type { Refusal } from "../../policy/judge/refusal.ts";
import { DEFERRED, type HeldAnswer, UNDECIDED } from "../ports.ts";
import { type Outcome, STAGE } from "../record/outcome.ts";
import type { Trace } from "../trace.ts";
import type { AliasLink } from "../wire/alias.ts";
import type { Question } from "../wire/question.ts";
import { type RefusedOptions, refusedReply, makeBare } from "../wire/refusal.ts";
import { relayFailure } from "../wire/relay.ts";
import { type AnswerGate, questionEndOf, refusalError } from "./answer-gate.ts";
import { recentKey, repeatAnswer } from "./recent-answers.ts";

export class PolicedQuery {
  readonly #behaviour: Behaviour;
  readonly #question: Question;
  readonly #outcome: Outcome;
  readonly #gate: AnswerGate;
  policy: NamespacePolicy | undefined;
  #limit = 0;
  /** It is set while a query is explained. */
  trace: Trace | undefined;
  /** The answer that waits, if the last query has one. */
  held: HeldAnswer | undefined;

  constructor(behaviour: Behaviour, question: Question, outcome: Outcome, gate: AnswerGate) {
    this.#behaviour = behaviour;
    this.#question = question;
    this.#outcome = outcome;
    this.#gate = gate;
  }

  /** The question has been read, and every other step is still to come. */
  begin(policy: NamespacePolicy, block: Buffer, limit: number): number {
    this.policy = policy;
    this.held = undefined;
    this.#limit = limit;
    if (policy.isEnforcing) makeBare(block, this.#question);
    const grant = policy.grantFor(this.#question);
    if (grant !== undefined) this.trace?.record("policy", grant.text);
    return this.#decide(block, policy.name(this.#question));
  }

  /** A container without a policy sends it. */
  skip(): void {
    this.policy = this.held = undefined;
  }

  /** A source of this machine has the name. */
  local(block: Buffer, source: LocalSource): number {
    const { policy } = this;
    return policy === undefined ? UNDECIDED : this.#decide(block, policy.local(this.#question, source));
  }

  /** The name of this machine leads to others, which are its answer. */
  targets(block: Buffer, links: readonly AliasLink[]): number {
    const { policy } = this;
    if (policy === undefined) return UNDECIDED;
    for (const { target } of links) {
      const refused = this.#decide(block, policy.target(new StoredName(target)));
      if (refused !== UNDECIDED) return refused;
    }
    return UNDECIDED;
  }

  /** It would be forwarded, or answered from the cache. */
  forward(block: Buffer): number {
    const { policy } = this;
    if (policy === undefined) return UNDECIDED;
    const refused = this.#decide(block, policy.forward(this.#question, this.#outcome.isOwn));
    if (refused === UNDECIDED) this.#explainRule(policy);
    return refused;
  }

  /** It is not cached, so it would leave the machine. */
  leave(block: Buffer): number {
    const { policy } = this;
    if (policy === undefined) return DEFERRED;
    const { offset, end, messageEnd } = this.#question;
    const questionEnd = end - offset;
    const { isStream, isOwn } = this.#outcome;
    const { nowMs } = policy;
    const key = recentKey(block.subarray(offset, messageEnd), questionEnd, isStream);
    const recentAnswers = this.#gate.recentOf(policy);
    const recent = recentAnswers.find(key, nowMs);
    if (recent !== undefined && policy.isEnforcing) {
      const seconds = ((nowMs - recent.fromMs) / 1000).toFixed(1);
      this.trace?.recordAnswer(
        "policy",
        `the same question was answered ${seconds} s ago, and is not asked again so soon`,
      );
      this.#outcome.stage = STAGE.cache;
      this.#outcome.result = recent.isFailure ? QUERY_RESULT.failed : QUERY_RESULT.cached;
      return repeatAnswer(recent, block, offset, questionEnd, nowMs);
    }
    // A policy that only records counts what would leave if it were enforced.
    if (recent !== undefined || (this.#mayJoin() && recentAnswers.isAsked(key, nowMs))) return DEFERRED;
    const refused = this.#decide(block, policy.leave(this.#question, isOwn));
    if (refused !== UNDECIDED) return refused;
    if (!isOwn) recentAnswers.asked(key, nowMs);
    return DEFERRED;
  }

  /** The same question in flight is sent once, for all that wait for its answer. */
  #mayJoin(): boolean {
    const { type } = this.#question;
    const isShared = type !== 0 && !isMetaType(type);
    return isShared && this.#behaviour.coalesces && this.#behaviour.handlesTruncation;
  }

  /** A rule of a test would answer it, as if it were known. `isLocal`: it is a name of this machine. */
  answerOfTest(block: Buffer, isLocal: () => boolean): number {
    const { policy } = this;
    if (policy === undefined) return UNDECIDED;
    const refusal = policy.forward(this.#question, true);
    return refusal?.isEnforced !== true || isLocal() ? UNDECIDED : this.#decide(block, refusal);
  }

  /** Docker's resolver would be asked, which forwards what it does not know unless the question keeps it from doing so. */
  ask(block: Buffer, { labels, isGuarded }: DockerAsk): number {
    const { policy } = this;
    if (policy === undefined || isGuarded) return UNDECIDED;
    const { type, class: queryClass } = this.#question;
    const asked: QuestionName = new StoredName(labels);
    return this.#decide(block, policy.forward({ ...asked, type, class: queryClass }, true));
  }

  /** The reply of `length` bytes is written. Returns its length, that of another in its place, or DEFERRED. */
  pass(block: Buffer, offset: number, length: number): number {
    const { policy } = this;
    const { stage, source, isOwn } = this.#outcome;
    if (policy === undefined || stage === STAGE.denied || stage === STAGE.probe) return length;
    const reply = block.subarray(offset, offset + length);
    const isLocal = stage === STAGE.local && !FOREIGN_SOURCES.has(source);
    const passage = this.#gate.pass(policy, reply, isLocal, isOwn);
    switch (passage.kind) {
      case "give":
        return length;
      case "refuse":
        return this.#refuse(block, offset, passage.refusal);
      case "fail": {
        this.#outcome.result = QUERY_RESULT.failed;
        const options = { ...this.#optOptions(), wantsAuthentic: false, isLocalName: false };
        return relayFailure(block, offset, questionEndOf(reply), options, RCODE.SERVFAIL);
      }
      case "wait": {
        const result = QUERY_RESULTS[this.#outcome.result] ?? "local";
        this.held = { reply: Buffer.from(reply), result, source, wait: passage.wait };
        return DEFERRED;
      }
    }
  }

  /** UNDECIDED unless the refusal is enforced. */
  #decide(block: Buffer, refusal: Refusal | undefined): number {
    if (refusal === undefined) return UNDECIDED;
    const outcome = this.#outcome;
    const { policy } = this;
    const isNoted = outcome.refusal !== undefined && outcome.refusal.isEnforced === refusal.isEnforced;
    if (!isNoted && !outcome.isOwn) policy?.note(refusal, this.#question, this.#question.type);
    if (refusal.isEnforced) return this.#refuse(block, this.#question.offset, refusal);
    outcome.refusal = refusal;
    this.trace?.record("policy", `${refusal.text}; only recorded (mode: ${refusal.policy.mode})`);
    return UNDECIDED;
  }

  #refuse(block: Buffer, offset: number, refusal: Refusal): number {
    const outcome = this.#outcome;
    this.trace?.recordAnswer("policy", refusal.text);
    outcome.refuse(refusal);
    outcome.stage = STAGE.denied;
    const options = { ...this.#optOptions(), why: refusalError(refusal) };
    return refusedReply(block, offset, questionEndOf(block.subarray(offset)), options);
  }

  #optOptions(): Pick<RefusedOptions, "limit" | "hasOpt" | "isDnssecOk"> {
    const { optCount, isDnssecOk } = this.#question.records;
    return { limit: this.#limit, hasOpt: this.#behaviour.speaksEdns && optCount > 0, isDnssecOk };
  }

  #explainRule(policy: NamespacePolicy): void {
    if (this.trace === undefined) return;
    const rule = policy.ruleFor(this.#question);
    const [first] = policy.policies;
    if (rule === undefined || first === undefined || this.#outcome.refusal !== undefined) return;
    this.trace.record("policy", `policy ${first.name}: allow ${rule.text} (${first.file}:${rule.line})`);
  }
}
