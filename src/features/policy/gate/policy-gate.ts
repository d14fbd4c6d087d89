import { RCODE } from "../../../base/dns/rcode.ts";
import { isMetaType } from "../../../base/dns/record-type.ts";
import type { Share } from "../../../base/lib/share.ts";
import { StoredName } from "../../../base/model/label-table.ts";
import { FOREIGN_SOURCES, type LocalSource } from "../../../base/model/local-source.ts";
import { QUERY_RESULT, QUERY_RESULTS } from "../../../base/model/query-record.ts";
import type { DockerQuestion, QuestionName } from "../../../base/model/visible-names.ts";
import type { NamespacePolicy } from "../judge/namespace-policy.ts";
import type { Refusal } from "../judge/refusal.ts";
import { DEFERRED, UNDECIDED } from "../../../query/ports.ts";
import type { CurrentQuery, ForwardedAnswer, PassedAnswer, QueryPolicy } from "../../../query/query-policy.ts";
import { STAGE } from "../../../query/record/outcome.ts";
import type { AliasLink } from "../../../query/wire/alias.ts";
import { hasQuestionOf } from "../../../query/wire/bare-query.ts";
import { relayFailure } from "../../../query/wire/relay.ts";
import { type AnswerGate, questionEndOf, refusalError } from "./answer-gate.ts";
import { passForwarded } from "./forwarded-answer.ts";
import { RecentAnswers, keyOfDeferred, recentKey, repeatAnswer } from "./recent-answers.ts";
import { type RefusedOptions, makeBare, refusedReply } from "./refused-reply.ts";

/** The policies of a namespace, as the queries of its clients meet them. */
export class PolicyGate implements QueryPolicy {
  readonly #policy: NamespacePolicy;
  readonly #gate: AnswerGate;
  readonly isEnforcing: boolean;
  /** What servers have answered lately, in this era. */
  #recent = new RecentAnswers();
  #era = 0;

  constructor(policy: NamespacePolicy, gate: AnswerGate) {
    this.#policy = policy;
    this.#gate = gate;
    this.isEnforcing = policy.isEnforcing;
  }

  begin(query: CurrentQuery, block: Buffer): number {
    const { question, trace } = query;
    if (this.isEnforcing) makeBare(block, question);
    const grant = this.#policy.grantFor(question);
    if (grant !== undefined) trace?.record("policy", grant.text);
    return this.#decide(query, block, this.#policy.name(question));
  }

  local(query: CurrentQuery, block: Buffer, source: LocalSource): number {
    return this.#decide(query, block, this.#policy.local(query.question, source));
  }

  targets(query: CurrentQuery, block: Buffer, links: readonly AliasLink[]): number {
    for (const { target } of links) {
      const refused = this.#decide(query, block, this.#policy.target(new StoredName(target)));
      if (refused !== UNDECIDED) return refused;
    }
    return UNDECIDED;
  }

  /** Docker's resolver forwards what it does not know unless the question keeps it from doing so. */
  ask(query: CurrentQuery, block: Buffer, { labels, isGuarded }: DockerQuestion): number {
    if (isGuarded) return UNDECIDED;
    const { type, class: queryClass } = query.question;
    const asked: QuestionName = new StoredName(labels);
    return this.#decide(query, block, this.#policy.forward({ ...asked, type, class: queryClass }, true));
  }

  /** A rule of a test answers as if the name were known. */
  judged(query: CurrentQuery, block: Buffer, isLocal: () => boolean): number {
    const refusal = this.#policy.forward(query.question, true);
    return refusal?.isEnforced !== true || isLocal() ? UNDECIDED : this.#decide(query, block, refusal);
  }

  forward(query: CurrentQuery, block: Buffer): number {
    const refused = this.#decide(query, block, this.#policy.forward(query.question, query.outcome.isOwn));
    if (refused === UNDECIDED) this.#explainRule(query);
    return refused;
  }

  leave(query: CurrentQuery, block: Buffer): number {
    const policy = this.#policy;
    const { question, outcome, trace, era } = query;
    const { offset, end, messageEnd } = question;
    const questionEnd = end - offset;
    const { isStream, isOwn } = outcome;
    const { nowMs } = policy;
    const key = recentKey(block.subarray(offset, messageEnd), questionEnd, isStream);
    const recentAnswers = this.#recentIn(era);
    const recent = recentAnswers.find(key, nowMs);
    if (recent !== undefined && policy.isEnforcing) {
      const seconds = ((nowMs - recent.fromMs) / 1000).toFixed(1);
      trace?.recordAnswer("policy", `the same question was answered ${seconds} s ago, and is not asked again so soon`);
      outcome.stage = STAGE.cache;
      outcome.result = recent.isFailure ? QUERY_RESULT.failed : QUERY_RESULT.cached;
      return repeatAnswer(recent, block, offset, questionEnd, nowMs);
    }
    // A policy that only records counts what would leave if it were enforced.
    if (recent !== undefined || (mayJoin(query) && recentAnswers.isAsked(key, nowMs))) return DEFERRED;
    const refused = this.#decide(query, block, policy.leave(question, isOwn));
    if (refused !== UNDECIDED) return refused;
    if (!isOwn) recentAnswers.asked(key, nowMs);
    return DEFERRED;
  }

  pass(query: CurrentQuery, block: Buffer, offset: number, length: number): number {
    const { outcome } = query;
    const { stage, source, isOwn } = outcome;
    if (stage === STAGE.denied || stage === STAGE.probe) return length;
    const reply = block.subarray(offset, offset + length);
    const isLocal = stage === STAGE.local && !FOREIGN_SOURCES.has(source);
    const passage = this.#gate.pass(this.#policy, reply, isLocal, isOwn);
    switch (passage.kind) {
      case "give":
        return length;
      case "refuse":
        return refuse(query, block, offset, passage.refusal);
      case "fail": {
        outcome.result = QUERY_RESULT.failed;
        const options = { ...optOptions(query), wantsAuthentic: false, isLocalName: false };
        return relayFailure(block, offset, questionEndOf(reply), options, RCODE.SERVFAIL);
      }
      case "wait": {
        const result = QUERY_RESULTS[outcome.result] ?? "local";
        query.held = { reply: Buffer.from(reply), result, source, wait: passage.wait };
        return DEFERRED;
      }
    }
  }

  answered({ deferred, transport, reply, result }: ForwardedAnswer, era: number): void {
    const isFailure = result === "failed";
    if ((!isFailure && result !== "forwarded") || deferred.isOwn === true) return;
    if (!hasQuestionOf(reply, deferred.query, deferred.questionEnd)) return;
    this.#recentIn(era).keep(keyOfDeferred(deferred, transport), reply, isFailure, this.#policy.nowMs);
  }

  passForwarded(answer: ForwardedAnswer, share: Share, give: (passed: PassedAnswer) => void): void {
    const isChanged = answer.deferred.policy !== this;
    passForwarded({ policy: this.#policy, gate: this.#gate, share, isChanged }, answer, give);
  }

  #recentIn(era: number): RecentAnswers {
    if (era !== this.#era) this.#recent = new RecentAnswers();
    this.#era = era;
    return this.#recent;
  }

  /** UNDECIDED unless the refusal is enforced. */
  #decide(query: CurrentQuery, block: Buffer, refusal: Refusal | undefined): number {
    if (refusal === undefined) return UNDECIDED;
    const { outcome, question, trace } = query;
    const isNoted = outcome.refusal !== undefined && outcome.refusal.isEnforced === refusal.isEnforced;
    if (!isNoted && !outcome.isOwn) this.#policy.note(refusal, question, question.type);
    if (refusal.isEnforced) return refuse(query, block, question.offset, refusal);
    outcome.refusal = refusal;
    trace?.record("policy", `${refusal.text}; only recorded (mode: ${refusal.policy.mode})`);
    return UNDECIDED;
  }

  #explainRule({ trace, question, outcome }: CurrentQuery): void {
    if (trace === undefined) return;
    const rule = this.#policy.ruleFor(question);
    const [first] = this.#policy.policies;
    if (rule === undefined || first === undefined || outcome.refusal !== undefined) return;
    trace.record("policy", `policy ${first.name}: allow ${rule.text} (${first.file}:${rule.line})`);
  }
}

/** The same question in flight is sent once, for all that wait for its answer. */
function mayJoin({ behaviour, question: { type } }: CurrentQuery): boolean {
  const isShared = type !== 0 && !isMetaType(type);
  return isShared && behaviour.coalesces && behaviour.handlesTruncation;
}

function refuse(query: CurrentQuery, block: Buffer, offset: number, refusal: Refusal): number {
  const { outcome, trace } = query;
  trace?.recordAnswer("policy", refusal.text);
  outcome.refuse(refusal);
  outcome.stage = STAGE.denied;
  const options = { ...optOptions(query), why: refusalError(refusal) };
  return refusedReply(block, offset, questionEndOf(block.subarray(offset)), options);
}

function optOptions({
  behaviour,
  question,
  limit,
}: CurrentQuery): Pick<RefusedOptions, "limit" | "hasOpt" | "isDnssecOk"> {
  const { optCount, isDnssecOk } = question.records;
  return { limit, hasOpt: behaviour.speaksEdns && optCount > 0, isDnssecOk };
}
