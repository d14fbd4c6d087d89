/**
 * Answerer: answers one query synchronously and in place, from bytes to bytes. A query that needs an upstream server is
 * deferred; it is copied out of the block before the block is reused.
 *
 * The steps, in order; the first that applies decides:
 *
 * 1. unreadable or unsupported queries, and invalid EDNS: an error, or no reply
 * 2. policies of the container that deny the name; then its judge, if it has one: another answer, none, or a delay
 * 3. classes other than IN and ANY: REFUSED for local names; other names in them continue at 8
 * 4. PTR: reverse names of containers
 * 5. links and container names, then names with records of their own; a name that only Docker's resolver knows defers the query
 * 6. TXT: our own probe of the redirect rules
 * 7. TXT: a probe of the loop guard that has come back
 * 8. the route of the name; a route marked local answers NXDOMAIN
 * 9. without a domain-specific route: names without a dot if ndots is set, then special names
 * 10. policies of the container, which allow what may leave the machine
 * 11. the cache; then for containers with a policy what they were answered lately, and how many questions they may still ask
 * 12. upstream servers
 */
import { randomBytes } from "node:crypto";
import { HEADER_BYTES } from "../base/dns/header.ts";
import { presentation } from "../base/dns/name.ts";
import { RCODE } from "../base/dns/rcode.ts";
import { TYPE } from "../base/dns/record-type.ts";
import { CLASS } from "../base/dns/record.ts";
import { copyBytes } from "../base/dns/bytes.ts";
import { LOCAL_SOURCE } from "../base/model/local-source.ts";
import { QUERY_RESULT } from "../base/model/query-record.ts";
import type { Behaviour } from "../base/model/behaviour.ts";
import { LOCAL_ONLY_DEFAULTS, type LocalOnlyPolicy } from "../base/model/upstream-policy.ts";
import {
  ONLY_DOCKER,
  RECORDS,
  DENIED,
  MISS,
  type NameRecords,
  type ReverseName,
  type DockerQuestion,
} from "../base/model/visible-names.ts";
import type { Route } from "../base/model/view.ts";
import { PROBE_NAME_BYTES, probeName, sentProbes } from "../base/model/probe-message.ts";
import type { Client } from "./client/client.ts";
import { type CacheReader, CACHE_MISS } from "./cache/cache-reader.ts";
import type { LoopGuard } from "./upstream/loop-guard.ts";
import { PolicedQuery } from "./policed-query.ts";
import { DEFERRED, type DeferredQuery, SLOT_BYTES, UNDECIDED, DROPPED } from "./ports.ts";
import { AnswerEra } from "./query-policy.ts";
import { Outcome, STAGE } from "./record/outcome.ts";
import { OwnRecords, isUpstream, type UpstreamAlias, Shuffler } from "./lookup/own-records.ts";
import { ForwardingRules, routeOf } from "./lookup/forwarding-rules.ts";
import { LocalNames, leftOutText } from "./lookup/local-names.ts";
import { RepeatMark } from "./repeater.ts";
import type { Trace } from "./trace.ts";
import { RuledAnswer, SpecialNames } from "./lookup/ruled-answer.ts";
import type { QueryJudge, AnswerFilter } from "./verdict.ts";
import { type Alias, chainOf, queryFor, replyToAlias } from "./wire/alias.ts";
import { recordsAnswer, recordsText } from "./wire/records-answer.ts";
import { Question, type QuestionResult } from "./wire/question.ts";
import {
  type AddressOptions,
  addressAnswer,
  failure,
  nameError,
  noData,
  pointerAnswer,
  sizeLimit,
  badVersion,
  refuseHeader,
  refuseQuestion,
} from "./wire/reply.ts";
import { shareBits } from "./wire/hop-options.ts";
import { signatureOf } from "./wire/records.ts";

/** The optional parts of an Answerer. A plain forwarder uses none of them. */
interface AnswererParts {
  readonly cache?: CacheReader | undefined;
  readonly loopGuard?: LoopGuard | undefined;
  readonly localOnly?: LocalOnlyPolicy;
  /** The same as of those who forward. */
  readonly era?: AnswerEra;
  readonly seed?: number;
}

export class Answerer {
  readonly #behaviour: Behaviour;
  readonly #parts: AnswererParts;
  readonly rules: ForwardingRules;
  readonly #special: SpecialNames;
  readonly #question: Question;
  readonly #names: LocalNames;
  readonly #shuffler: Shuffler;
  readonly #ownRecords: OwnRecords;
  readonly #ruled: RuledAnswer;
  readonly #repeats: RepeatMark;
  readonly #policed: PolicedQuery;
  #isLocalName = false;
  /** Set if the query is for the target of a name's CNAME; it is then in `#aliasBlock`. */
  #alias: Alias | undefined;
  readonly #aliasBlock = Buffer.allocUnsafeSlow(SLOT_BYTES);
  #route: Route | undefined;
  #limit = 0;
  readonly outcome = new Outcome();
  #trace: Trace | undefined;
  readonly #addressOptions: { -readonly [Key in keyof AddressOptions]: AddressOptions[Key] };

  constructor(behaviour: Behaviour, parts: AnswererParts = {}) {
    this.#behaviour = behaviour;
    this.#question = new Question(behaviour.checksQueries);
    this.#repeats = new RepeatMark(behaviour);
    this.#parts = parts;
    const { seed = randomBytes(4).readInt32LE(0), localOnly = LOCAL_ONLY_DEFAULTS, era = new AnswerEra() } = parts;
    this.#policed = new PolicedQuery(behaviour, this.#question, this.outcome, era);
    this.rules = new ForwardingRules(behaviour, localOnly);
    this.#special = new SpecialNames(behaviour);
    this.#names = new LocalNames(behaviour);
    this.#shuffler = new Shuffler(seed);
    this.#ownRecords = new OwnRecords(behaviour, this.#names, this.#shuffler);
    this.#ruled = new RuledAnswer(behaviour, this.#ownRecords, {
      question: this.#question,
      outcome: this.outcome,
      names: this.#names,
      policed: this.#policed,
    });
    const shuffle = (count: number): Uint16Array => this.#shuffler.order(count);
    this.#addressOptions = { limit: 0, ttlSeconds: 0, isSorted: false, shuffle, behaviour };
  }

  /**
   * Answers the `length` bytes at `offset`, in place; the block must have SLOT_BYTES there. Returns the length of the
   * reply, DROPPED, or DEFERRED. `isOwn`: dns11 itself sent it.
   */
  answer(
    client: Client,
    block: Buffer,
    offset: number,
    length: number,
    isStream: boolean,
    isOwn: boolean = false,
  ): number {
    const { outcome } = this;
    client.tap?.asked(block, offset, length, isStream, isOwn);
    outcome.begin(block, offset, isStream, isOwn);
    const result = this.#answer(client, block, offset, length, isStream, client.judge);
    if (result > 0) outcome.end(result);
    client.record(outcome);
    if (this.#repeats.isSet) {
      // A judge and a policy must see every query, so the kernel does not repeat the answers to those that they cover.
      const isRepeatable = !isOwn && client.policy === undefined && client.judge?.isCovered !== true;
      this.#repeats.offer(isRepeatable ? client.repeater : undefined, block, this.#question, outcome);
    }
    return result;
  }

  #answer(
    client: Client,
    block: Buffer,
    offset: number,
    length: number,
    isStream: boolean,
    judge: QueryJudge | undefined,
  ): number {
    const { outcome } = this;
    const question = this.#question;
    this.#names.begin(client.dockerAnswers);
    const verdict = question.read(block, offset, length);
    if (verdict !== "answer") return refuseUnreadable(block, question, offset, verdict, outcome);
    outcome.type = question.type;
    outcome.nameEnd = question.nameEnd;
    if (this.#behaviour.speaksEdns && question.records.optCount > 0) {
      const refused = refuseEdns(block, question, this.#behaviour, outcome);
      if (refused !== UNDECIDED) return refused;
    }
    this.#limit = sizeLimit(question.limitUdpSize(client.udpBytesMax), isStream);
    this.#ruled.delayMs = undefined;
    const isOwnProbe = this.#isOwnProbe(client, block);
    if (question.nameEnd - question.offset === HEADER_BYTES + PROBE_NAME_BYTES && sentProbes.has(this.#nameIn(block)))
      outcome.isOwn = true;
    const { policy } = client;
    const isPoliced = policy !== undefined && !isOwnProbe;
    if (isPoliced) {
      const refused = this.#policed.begin(policy, block, this.#limit);
      if (refused !== UNDECIDED) return refused;
    } else this.#policed.skip();
    if (judge !== undefined && !isOwnProbe) {
      this.#alias = undefined;
      const ruled = this.#ruled.answer(judge, client, block, this.#limit, isStream);
      if (ruled !== UNDECIDED) return isPoliced && ruled > 0 ? this.#pass(block, offset, ruled) : ruled;
    }
    outcome.stage = STAGE.local;
    const decided = this.#decide(client, block, isStream);
    const { filter } = client;
    const result = filter === undefined || decided <= 0 ? decided : this.#filtered(filter, block, offset, decided);
    if (result === DEFERRED) outcome.stage = STAGE.deferred;
    return isPoliced && result > 0 ? this.#pass(block, offset, result) : result;
  }

  /** Filters the answer that has been written. An answer from which records were taken is not repeated. */
  #filtered(filter: AnswerFilter, block: Buffer, offset: number, length: number): number {
    const left = filter.apply(block.subarray(offset, offset + length), this.#limit);
    if (left === undefined) return length;
    copyBytes(left, 0, left.length, block, offset);
    this.#trace?.record("filter", filter.text);
    return this.#repeats.without(left.length);
  }

  /** Has the policy judge the answer that has been written. */
  #pass(block: Buffer, offset: number, length: number): number {
    const passed = this.#policed.pass(block, offset, length);
    if (passed === DEFERRED) this.outcome.isHeld = true;
    return passed;
  }

  /** Does what `answer` does, at the start of a block, and records each decision and its reason in `trace`. */
  explain(client: Client, block: Buffer, length: number, isStream: boolean, trace: Trace): number | DeferredQuery {
    this.#setTrace(trace);
    try {
      const result = this.answer(client, block, 0, length, isStream, true);
      return result === DEFERRED ? { ...this.takeDeferred(block), trace } : result;
    } finally {
      this.#setTrace(undefined);
    }
  }

  /** Copies the query that the last call deferred. */
  takeDeferred(queryBlock: Buffer): DeferredQuery {
    const { rule, refusal, isOwn } = this.outcome;
    const { policy, held } = this.#policed;
    const alias = this.#alias;
    return copiedQuery(alias === undefined ? queryBlock : this.#aliasBlock, this.#question, {
      isLocalName: this.#isLocalName,
      route: this.#route as Route,
      isOwn,
      alias,
      dockerQuestion: this.#names.dockerQuestion,
      delayMs: this.#ruled.delayMs,
      rule,
      policy,
      refusal,
      held,
    });
  }

  /** Answers a query again that was deferred for Docker's resolver, or delayed. It has been judged and counted already. */
  answerAgain(client: Client, block: Buffer, deferred: DeferredQuery, isStream: boolean): number {
    const { outcome } = this;
    const { query, trace, isOwn, rule, refusal } = deferred;
    this.#setTrace(trace);
    try {
      outcome.begin(block, 0, isStream, isOwn);
      outcome.rule = rule;
      outcome.refusal = refusal;
      const result = this.#answer(client, block, 0, query.length, isStream, undefined);
      if (result > 0) outcome.end(result);
      if (this.#repeats.isSet) this.#repeats.offer(undefined, block, this.#question, outcome);
      return result;
    } finally {
      this.#setTrace(undefined);
    }
  }

  #setTrace(trace: Trace | undefined): void {
    const { cache } = this.#parts;
    this.#trace = this.#names.trace = this.#special.trace = this.#policed.trace = this.#ruled.trace = trace;
    if (cache !== undefined) cache.trace = trace;
  }

  #decide(client: Client, block: Buffer, isStream: boolean): number {
    const question = this.#question;
    const { type } = question;
    this.#isLocalName = false;
    this.#alias = undefined;
    if (this.#behaviour.checksQueries && question.class !== CLASS.IN && question.class !== CLASS.ANY) {
      return this.#decideOtherClass(client, block);
    }
    if (type === TYPE.PTR) {
      const pointer = this.#names.reverse(question, client.view);
      if (this.#names.dockerQuestion !== undefined) return this.#ask(block, this.#names.dockerQuestion);
      this.#trace?.recordReverse(pointer);
      if (pointer !== undefined) return this.#answerPointer(block, pointer);
    }
    if (type === TYPE.A || type === TYPE.AAAA || type === TYPE.MX || this.#behaviour.answersAllTypes) {
      const answer = this.#answerName(client, block);
      if (answer !== UNDECIDED) return answer;
    } else this.#trace?.record("names", "only A, AAAA and MX queries are looked up in local names, as in Docker");
    if (type !== TYPE.PTR) this.#trace?.record("reverse", "not a PTR query");
    if (this.#isOwnProbe(client, block)) {
      client.probeSeen[isStream ? "tcp" : "udp"] = true;
      this.outcome.stage = STAGE.probe;
      return noData(block, question, this.#behaviour);
    }
    const { loopGuard } = this.#parts;
    if (type === TYPE.TXT && loopGuard?.hasProbes === true) {
      if (loopGuard.recordProbe(client, block, question.offset + HEADER_BYTES, question.nameEnd)) {
        this.outcome.stage = STAGE.probe;
        return nameError(block, question, this.#behaviour);
      }
    }
    return this.#decideForwarding(client, block);
  }

  #answerPointer(block: Buffer, { target, ttlSeconds, dockerQuestion, isTimed }: ReverseName): number {
    const question = this.#question;
    const behaviour = this.#behaviour;
    this.outcome.source = this.#names.source;
    const refused = this.#policed.local(block, this.outcome.source);
    if (refused !== UNDECIDED) return refused;
    if (target !== undefined && dockerQuestion === undefined && isTimed !== true) this.#repeats.set(0);
    if (target !== undefined) return pointerAnswer(block, question, target, behaviour, this.#limit, ttlSeconds);
    if (dockerQuestion !== undefined) return nameError(block, question, behaviour, ttlSeconds);
    return failure(block, question, RCODE.SERVFAIL, behaviour);
  }

  /** Defers the query until Docker's resolver has answered; then the query is answered again. */
  #ask(block: Buffer, dockerQuestion: DockerQuestion): number {
    const refused = this.#policed.ask(block, dockerQuestion);
    if (refused !== UNDECIDED) return refused;
    this.#trace?.record("names", `it may be a name of ${dockerQuestion.whose}: Docker's resolver is asked`);
    return DEFERRED;
  }

  /** Local names are of class IN. A query of another class is forwarded, unless the name is local. */
  #decideOtherClass(client: Client, block: Buffer): number {
    const question = this.#question;
    const names = this.#names;
    if (names.find(question, client.view) === MISS && names.reverse(question, client.view) === undefined)
      return this.#decideForwarding(client, block);
    const refused = this.#policed.local(block, names.source);
    if (refused !== UNDECIDED) return refused;
    this.#trace?.recordAnswer("names", "a local name, queried in another class than IN");
    this.outcome.result = QUERY_RESULT.refused;
    return failure(block, question, RCODE.REFUSED, this.#behaviour);
  }

  /**
   * Decides whether a name is forwarded, and to which servers. A domain-specific route takes precedence over all rules.
   */
  #decideForwarding(client: Client, block: Buffer): number {
    const question = this.#question;
    const [{ upstreams }, { type }] = [client.view, question];
    if (this.#names.unanswered !== undefined) {
      this.#trace?.recordHeld(this.#names.unanswered);
      this.outcome.result = QUERY_RESULT.failed;
      return failure(block, question, RCODE.SERVFAIL, this.#behaviour);
    }
    const route = routeOf(question, upstreams);
    this.#trace?.recordRoute(route);
    const rule = this.rules.ruleOf(question, type, upstreams, route);
    if (rule !== undefined) {
      this.outcome.lacksAddress = rule === "ndots" && type === TYPE.A;
      if (rule === "refused") this.outcome.result = QUERY_RESULT.refused;
      return this.#repeats.of(this.#special.answer(block, question, rule, this.#limit));
    }
    this.#trace?.recordForwarding(route);
    const refused = this.#policed.forward(block);
    if (refused !== UNDECIDED) return refused;
    this.#route = route;
    const result = this.#answerFromCache(client, block, route);
    return result === DEFERRED ? this.#policed.leave(block) : result;
  }

  #answerFromCache(client: Client, block: Buffer, route: Route): number {
    const { cache } = this.#parts;
    if (cache === undefined) {
      this.#trace?.record("cache", "off (cache.size: 0)");
      return DEFERRED;
    }
    const { outcome } = this;
    const length = cache.answer(client, block, this.#question, route, this.#limit, this.#isLocalName, outcome);
    if (length === CACHE_MISS) return DEFERRED;
    outcome.stage = STAGE.cache;
    return outcome.result === QUERY_RESULT.cached ? this.#repeats.ofCached(length, cache.repeatable) : length;
  }

  #answerName(client: Client, block: Buffer): number {
    const question = this.#question;
    const found = this.#names.find(question, client.view);
    if (found === MISS) return UNDECIDED;
    if (found === ONLY_DOCKER) return this.#ask(block, this.#names.dockerQuestion as DockerQuestion);
    this.outcome.source = this.#names.source;
    if (found === DENIED) {
      this.#trace?.amendLast(true, "no such name, and no other source may have it");
      return nameError(block, question, this.#behaviour, this.#names.denialSeconds);
    }
    const refused = this.#policed.local(block, this.#names.source);
    if (refused !== UNDECIDED) return refused;
    if (found === RECORDS) return this.#answerRecords(client, block, this.#names.search.records as NameRecords);
    const { addresses: local, isLocalOnly, isTimed } = this.#names.search;
    const { type } = question;
    if (type === TYPE.A || type === TYPE.AAAA) {
      const addresses = type === TYPE.A ? local.v4 : local.v6;
      if (addresses.length === 0) {
        this.#trace?.amendLast(true, "no address of this family, so the answer is empty");
        this.outcome.lacksAddress = type === TYPE.A;
        if (!isTimed) this.#repeats.set(0);
        return noData(block, question, this.#behaviour, local.ttlSeconds);
      }
      if (!isTimed) this.#repeats.set(local.isSorted === true ? 0 : type === TYPE.A ? 4 : 16);
      if (this.#trace !== undefined) this.#trace.amendLast(true, `answered with its addresses${leftOutText(local)}`);
      const options = this.#addressOptions;
      options.limit = this.#limit;
      options.ttlSeconds = local.ttlSeconds ?? this.#behaviour.ttlSeconds;
      options.isSorted = local.isSorted === true;
      return addressAnswer(block, question, addresses, type === TYPE.A ? 4 : 16, options);
    }
    // A name with a dot may also exist in public DNS, with its own MX or CAA records.
    if (type === TYPE.MX || isLocalOnly || question.labelCount < 2) {
      if (!isTimed) this.#repeats.set(0);
      this.#trace?.amendLast(true, "it has addresses only, so the answer for another type is empty");
      return noData(block, question, this.#behaviour, local.ttlSeconds);
    }
    this.#trace?.amendLast(
      false,
      "it may also exist in public DNS: other types are forwarded, and NXDOMAIN becomes an empty answer",
    );
    this.#isLocalName = true;
    this.outcome.source = LOCAL_SOURCE.rule;
    return UNDECIDED;
  }

  /** A name with records of its own has no others, but those that its CNAMEs lead to. */
  #answerRecords(client: Client, block: Buffer, own: NameRecords): number {
    const question = this.#question;
    const { type } = question;
    const resolved = this.#ownRecords.resolve(own, type, client.view);
    if (this.#names.dockerQuestion !== undefined) return this.#ask(block, this.#names.dockerQuestion);
    const refused = this.#policed.targets(block, resolved.links);
    if (refused !== UNDECIDED) return refused;
    if (isUpstream(resolved)) return this.#forwardAlias(client, block, resolved);
    this.#trace?.amendLast(true, recordsText(resolved));
    this.outcome.lacksAddress = type === TYPE.A && resolved.records.length === 0;
    this.#repeats.set(this.#ownRecords.shuffledBytesOf(resolved));
    return recordsAnswer(block, question, resolved, this.#limit, this.#behaviour);
  }

  /** Forwards a query for the name that the CNAMEs of such a name lead to. */
  #forwardAlias(client: Client, block: Buffer, { links, target }: UpstreamAlias): number {
    const question = this.#question;
    const { offset, end, type, records } = question;
    const questionEnd = end - offset;
    const alias: Alias = {
      query: Buffer.from(block.subarray(offset, end)),
      questionEnd,
      type,
      chain: chainOf(links, questionEnd),
      links: links.length,
      limit: this.#limit,
      opt: this.#behaviour.speaksEdns && records.optCount > 0 ? { isDnssecOk: records.isDnssecOk } : undefined,
    };
    this.#trace?.record("names", `its CNAME leads to "${presentation(target, 0, target.length)}", which is not local`);
    const aliasBlock = this.#aliasBlock;
    const length = queryFor(target, block, question, aliasBlock);
    if (question.read(aliasBlock, 0, length) !== "answer") throw new Error("the query for an alias cannot be read");
    this.#alias = alias;
    const result = this.#decideForwarding(client, aliasBlock);
    // An answer for the target is no answer to the question, so it is not repeated.
    if (this.#repeats.without(result) <= 0) return result;
    const reply = replyToAlias(aliasBlock.subarray(0, result), alias, client.policy === undefined);
    copyBytes(reply, 0, reply.length, block, offset);
    return reply.length;
  }

  #isOwnProbe({ probeNonce }: Client, block: Buffer): boolean {
    const isText = this.#question.type === TYPE.TXT && probeNonce !== undefined;
    return isText && this.#nameIn(block) === probeName(probeNonce);
  }

  #nameIn(block: Buffer): string {
    const { offset, nameEnd } = this.#question;
    return presentation(block, offset + HEADER_BYTES, nameEnd);
  }
}

/** What a deferred query has beside its message. */
type DeferralReason = Pick<
  DeferredQuery,
  "isLocalName" | "route" | "isOwn" | "alias" | "dockerQuestion" | "delayMs" | "rule" | "policy" | "refusal" | "held"
>;

/** All keys in one literal: spreading objects into it would cost each cache miss microseconds. */
function copiedQuery(block: Buffer, question: Question, reason: DeferralReason): DeferredQuery {
  const { offset, end, messageEnd, records, type, folded, foldedLength, hash } = question;
  const { isLocalName, route, isOwn, alias, dockerQuestion, delayMs, rule, policy, refusal, held } = reason;
  const query = Buffer.allocUnsafe(messageEnd - offset);
  copyBytes(block, offset, messageEnd, query, 0);
  return {
    query,
    questionEnd: end - offset,
    hasOpt: records.optCount > 0,
    udpSize: records.optCount > 0 ? records.optUdpSize : 0,
    type,
    bits: shareBits(block, question),
    name: folded.toString("latin1", 0, foldedLength),
    nameHash: hash,
    isDnssecOk: records.isDnssecOk,
    signature: signatureOf(records, offset),
    isLocalName,
    route,
    isOwn,
    alias,
    dockerQuestion,
    delayMs,
    rule,
    policy,
    refusal,
    held,
  };
}

/** Writes the error reply to a query that cannot be read; returns its length, or DROPPED. */
function refuseUnreadable(
  block: Buffer,
  question: Question,
  offset: number,
  verdict: Exclude<QuestionResult, "answer">,
  outcome: Outcome,
): number {
  if (verdict === "ignore") return DROPPED;
  outcome.stage = STAGE.malformed;
  outcome.result = QUERY_RESULT.refused;
  if (verdict === "not-implemented") return refuseHeader(block, offset, RCODE.NOTIMP, true);
  if (verdict === "malformed") return refuseHeader(block, offset, RCODE.FORMERR, false);
  outcome.type = question.type;
  outcome.nameEnd = question.nameEnd;
  return refuseQuestion(block, question, RCODE.FORMERR);
}

/** Writes the error reply to invalid EDNS; returns UNDECIDED if the EDNS is valid. */
function refuseEdns(block: Buffer, question: Question, behaviour: Behaviour, outcome: Outcome): number {
  const { optCount, optVersion } = question.records;
  if (optCount === 1 && optVersion === 0) return UNDECIDED;
  outcome.stage = STAGE.refused;
  outcome.result = QUERY_RESULT.refused;
  if (optCount > 1) return refuseQuestion(block, question, RCODE.FORMERR);
  outcome.rcode = RCODE.BADVERS;
  return badVersion(block, question, behaviour);
}
