/**
 * The whole way of a query, as one function: bytes in, bytes out, in the same place, at once. Only what nobody here
 * knows is deferred, and taken from the block before the block is used again.
 *
 * The order in which it is decided stands in `#decide`, top to bottom: links and names, reverse names, our own probe,
 * names that never leave, everything else upstream.
 */
import { randomBytes } from "node:crypto";

import { HEADER_BYTES } from "../base/dns/header.ts";
import { presentation } from "../base/dns/name.ts";
import { RCODE } from "../base/dns/rcode.ts";
import { TYPE } from "../base/dns/record-type.ts";
import { CLASS } from "../base/dns/record.ts";
import { copyBytes } from "../base/lib/bytes.ts";
import { QUERY_RESULT } from "../base/model/query-record.ts";
import type { Behaviour } from "../base/model/behaviour.ts";
import { LOCAL_ONLY_DEFAULTS, type LocalOnlyPolicy } from "../base/model/upstream-policy.ts";
import { DENIED, MISS } from "../base/model/visible-names.ts";
import type { Route } from "../base/model/view.ts";
import { probeName } from "../base/model/probe-message.ts";
import type { Client } from "./client/client.ts";
import { type CacheReader, CACHE_MISS } from "./cache/cache-reader.ts";
import { shareBits } from "./cache/shareable.ts";
import type { LoopGuard } from "./upstream/loop-guard.ts";
import { DEFERRED, DROPPED, type DeferredQuery, type Signature } from "./ports.ts";
import { Outcome, STAGE } from "./record/outcome.ts";
import { LocalNames } from "./policy/local-names.ts";
import { routeOf } from "./policy/route.ts";
import type { Trace } from "./trace.ts";
import { Shuffler } from "./policy/shuffle.ts";
import { SpecialNames } from "./policy/special.ts";
import { Question, type Verdict } from "./wire/question.ts";
import type { Records } from "./wire/records.ts";
import {
  type Shuffle,
  addressAnswer,
  badVersion,
  failure,
  nameError,
  noData,
  pointerAnswer,
  refuseHeader,
  refuseQuestion,
  sizeLimit,
} from "./wire/reply.ts";

/** What answers before somebody is asked, and what is looked out for; none of it where queries only go to the forwarder. */
export interface AnswererParts {
  readonly cache?: CacheReader | undefined;
  readonly loopGuard?: LoopGuard | undefined;
  readonly localOnly?: LocalOnlyPolicy;
  readonly seed?: number;
}

export class Answerer {
  readonly #behaviour: Behaviour;
  readonly #parts: AnswererParts;
  readonly #special: SpecialNames;
  readonly #question: Question;
  readonly #names: LocalNames;
  readonly #shuffler: Shuffler;
  #isKnown = false;
  #route: Route | undefined;
  #limit = 0;
  /** What became of the query that was answered last. */
  readonly outcome = new Outcome();
  #trace: Trace | undefined;
  readonly #addressOptions: { limit: number; readonly shuffle: Shuffle; readonly behaviour: Behaviour };

  constructor(behaviour: Behaviour, parts: AnswererParts = {}) {
    this.#behaviour = behaviour;
    this.#question = new Question(behaviour.checksQueries);
    this.#parts = parts;
    const { seed = randomBytes(4).readInt32LE(0), localOnly: leave = LOCAL_ONLY_DEFAULTS } = parts;
    this.#special = new SpecialNames(behaviour, leave);
    this.#names = new LocalNames(behaviour);
    this.#shuffler = new Shuffler(seed);
    const shuffle = (count: number): Uint16Array => this.#shuffler.order(count);
    this.#addressOptions = { limit: 0, shuffle, behaviour };
  }

  /**
   * Answers the `length` bytes at `offset`, in place; the block must have SLOT_BYTES there. Returns the length of the
   * reply, DROPPED, or DEFERRED.
   */
  answer(client: Client, block: Buffer, offset: number, length: number, isStream: boolean): number {
    const { outcome } = this;
    outcome.begin(block, offset, isStream);
    const result = this.#answer(client, block, offset, length, isStream);
    if (result > 0) outcome.end(result);
    client.record(outcome);
    return result;
  }

  #answer(client: Client, block: Buffer, offset: number, length: number, isStream: boolean): number {
    const { outcome } = this;
    const question = this.#question;
    const verdict = question.read(block, offset, length);
    if (verdict !== "answer") return this.#refuseUnreadable(block, offset, verdict);
    outcome.type = question.type;
    outcome.nameEnd = question.nameEnd;
    if (this.#behaviour.speaksEdns && question.records.optCount > 0) {
      const refused = this.#refuseEdns(block);
      if (refused !== DROPPED) return refused;
    }
    this.#limit = sizeLimit(question.records.optUdpSize, isStream);
    outcome.stage = STAGE.here;
    const result = this.#decide(client, block, isStream);
    if (result === DEFERRED) outcome.stage = STAGE.deferred;
    return result;
  }

  #refuseUnreadable(block: Buffer, offset: number, verdict: Exclude<Verdict, "answer">): number {
    const { outcome } = this;
    const question = this.#question;
    if (verdict === "ignore") return DROPPED;
    outcome.stage = STAGE.unreadable;
    outcome.result = QUERY_RESULT.refused;
    if (verdict === "not-implemented") return refuseHeader(block, offset, RCODE.NOTIMP, true);
    if (verdict === "malformed") return refuseHeader(block, offset, RCODE.FORMERR, false);
    outcome.type = question.type;
    outcome.nameEnd = question.nameEnd;
    return refuseQuestion(block, question, RCODE.FORMERR);
  }

  /** What is wrong with the EDNS of a query, as a reply; DROPPED where nothing is. */
  #refuseEdns(block: Buffer): number {
    const { outcome } = this;
    const question = this.#question;
    const { optCount, optVersion } = question.records;
    if (optCount === 1 && optVersion === 0) return DROPPED;
    outcome.stage = STAGE.refused;
    outcome.result = QUERY_RESULT.refused;
    if (optCount > 1) return refuseQuestion(block, question, RCODE.FORMERR);
    outcome.rcode = RCODE.BADVERS;
    return badVersion(block, question, this.#behaviour);
  }

  /** Answers as `answer` does, at the beginning of a block, and tells `trace` what is decided and why. */
  explain(client: Client, block: Buffer, length: number, isStream: boolean, trace: Trace): number | DeferredQuery {
    this.#setTrace(trace);
    try {
      const result = this.answer(client, block, 0, length, isStream);
      return result === DEFERRED ? { ...this.takeDeferred(block), trace } : result;
    } finally {
      this.#setTrace(undefined);
    }
  }

  /** What the last answer deferred. */
  takeDeferred(block: Buffer): DeferredQuery {
    const { offset, end, messageEnd, records, type, folded, foldedLength, hash } = this.#question;
    const query = Buffer.allocUnsafe(messageEnd - offset);
    copyBytes(block, offset, messageEnd, query, 0);
    return {
      query,
      questionEnd: end - offset,
      hasOpt: records.optCount > 0,
      udpSize: records.optCount > 0 ? records.optUdpSize : 0,
      isLocalName: this.#isKnown,
      route: this.#route as Route,
      type,
      bits: shareBits(block, this.#question),
      name: folded.toString("latin1", 0, foldedLength),
      nameHash: hash,
      isDnssecOk: records.isDnssecOk,
      signature: signatureOf(records, offset),
    };
  }

  #setTrace(trace: Trace | undefined): void {
    const { cache: memory } = this.#parts;
    this.#trace = this.#names.trace = this.#special.trace = trace;
    this.outcome.isExplained = trace !== undefined;
    if (memory !== undefined) memory.trace = trace;
  }

  #decide(client: Client, block: Buffer, isStream: boolean): number {
    const question = this.#question;
    const { type } = question;
    this.#isKnown = false;
    if (this.#behaviour.checksQueries && question.class !== CLASS.IN && question.class !== CLASS.ANY) {
      return this.#decideOtherClass(client, block);
    }
    if (type === TYPE.A || type === TYPE.AAAA || type === TYPE.MX || this.#behaviour.answersAllTypes) {
      const answer = this.#answerName(client, block);
      if (answer !== DEFERRED) return answer;
    } else this.#trace?.record("names", "only addresses (A, AAAA, MX) are looked up among names, as with Docker");
    if (type === TYPE.PTR) {
      const pointer = this.#names.reverse(question, client.view);
      this.#trace?.recordReverse(pointer);
      if (pointer !== undefined) {
        return pointer.target === undefined
          ? failure(block, question, RCODE.SERVFAIL, this.#behaviour)
          : pointerAnswer(block, question, pointer.target, this.#behaviour, this.#limit);
      }
    } else this.#trace?.record("reverse", "the question is not which name an address has (PTR)");
    if (type === TYPE.TXT && client.nonce !== undefined && this.#isProbe(client.nonce, block)) {
      client.seenNonce[isStream ? "tcp" : "udp"] = true;
      this.outcome.stage = STAGE.ours;
      return noData(block, question, this.#behaviour);
    }
    const { loopGuard: guard } = this.#parts;
    if (type === TYPE.TXT && guard?.hasProbes === true) {
      const { offset, nameEnd } = question;
      if (guard.recordProbe(client, block, offset + HEADER_BYTES, nameEnd)) {
        this.outcome.stage = STAGE.ours;
        return nameError(block, question, this.#behaviour);
      }
    }
    return this.#leave(client, block);
  }

  /** Names here are of the internet's class. What other classes know is for servers to say, but not of a name of ours. */
  #decideOtherClass(client: Client, block: Buffer): number {
    const question = this.#question;
    const names = this.#names;
    const isOurs = names.find(question, client.view) !== MISS || names.reverse(question, client.view) !== undefined;
    if (!isOurs) return this.#leave(client, block);
    this.#trace?.recordAnswer("names", "the name is known here, and the question is of another class than IN");
    this.outcome.result = QUERY_RESULT.refused;
    return failure(block, question, RCODE.REFUSED, this.#behaviour);
  }

  /** What is decided of a name before it leaves: whether it does, and to whom. A route of its own goes before all rules. */
  #leave(client: Client, block: Buffer): number {
    const question = this.#question;
    const { upstreams } = client.view;
    const { type } = question;
    const route = routeOf(question, upstreams);
    this.#trace?.recordRoute(route);
    if (route.isLocal) return nameError(block, question, this.#behaviour);
    if (route.labelCount === 0) {
      const isAddress = type === TYPE.A || type === TYPE.AAAA;
      if (isAddress && question.labelCount < 2 && upstreams.isNdotsSet) {
        this.#trace?.recordAnswer(
          "special",
          "ndots is set, so the addresses of names without a dot are not asked outside",
        );
        return noData(block, question, this.#behaviour);
      }
      const special = this.#special.answer(block, question, this.#limit);
      if (special > 0) return special;
      this.#trace?.record("special", "no name that is kept from leaving");
    } else this.#trace?.record("special", "a route of its own goes before the rules for special names");
    this.#route = route;
    return this.#remember(client, block, route);
  }

  /** What servers said before, if that is still good. */
  #remember(client: Client, block: Buffer, route: Route): number {
    const { cache: memory } = this.#parts;
    if (memory === undefined) {
      this.#trace?.record("cache", "nothing is kept: the switch cache is off");
      return DEFERRED;
    }
    const { outcome } = this;
    const length = memory.answer(client, block, this.#question, route, this.#limit, this.#isKnown, outcome);
    if (length === CACHE_MISS) return DEFERRED;
    outcome.stage = STAGE.cache;
    return length;
  }

  #answerName(client: Client, block: Buffer): number {
    const question = this.#question;
    const said = this.#names.find(question, client.view);
    if (said === MISS) return DEFERRED;
    if (said === DENIED) {
      this.#trace?.amendLast(true, "whoever keeps such names knows of none");
      return nameError(block, question, this.#behaviour);
    }
    const { addresses: named, isLocalOnly: isOnlyHere } = this.#names.search;
    const { type } = question;
    if (type === TYPE.A || type === TYPE.AAAA) {
      const addresses = type === TYPE.A ? named.v4 : named.v6;
      if (addresses.length === 0) {
        this.#trace?.amendLast(true, "it has no address of this family, and the answer is empty");
        return noData(block, question, this.#behaviour);
      }
      this.#trace?.amendLast(true, "its addresses are the answer");
      this.#addressOptions.limit = this.#limit;
      return addressAnswer(block, question, addresses, type === TYPE.A ? 4 : 16, this.#addressOptions);
    }
    // A dotted name may also exist outside, with a mail exchanger or a certificate policy of its own.
    if (type === TYPE.MX || isOnlyHere || question.labelCount < 2) {
      this.#trace?.amendLast(true, "only addresses are held, and the answer for another type is empty");
      return noData(block, question, this.#behaviour);
    }
    this.#trace?.amendLast(false, "it may exist outside, too: other types are asked there, and NXDOMAIN becomes empty");
    this.#isKnown = true;
    return DEFERRED;
  }

  #isProbe(nonce: string, block: Buffer): boolean {
    const { offset, nameEnd } = this.#question;
    return presentation(block, offset + HEADER_BYTES, nameEnd) === probeName(nonce);
  }
}

function signatureOf({ lastType, lastAt }: Records, offset: number): Signature | undefined {
  const isTsig = lastType === TYPE.TSIG;
  return isTsig || lastType === TYPE.SIG ? { at: lastAt - offset, isTsig } : undefined;
}
