/**
 * The whole way of a query, as one function: bytes in, bytes out, in the same place, at once. Only what nobody here
 * knows is deferred, and taken from the block before the block is used again.
 *
 * The order in which it is decided stands in `#decide`, top to bottom: links and names, reverse names, our own probe,
 * names that never leave, everything else upstream.
 */
import { randomBytes } from "node:crypto";

import { HEADER_BYTES, rcodeOf } from "../dns/header.ts";
import { presentation } from "../dns/name.ts";
import { RCODE } from "../dns/rcode.ts";
import { TYPE } from "../dns/record-type.ts";
import { CLASS } from "../dns/record.ts";
import { MESSAGE_BYTES_MAX } from "../dns/sizes.ts";
import { copyBytes } from "../lib/bytes.ts";
import { HOW } from "../model/asked-query.ts";
import type { Behaviour } from "../model/behaviour.ts";
import { LEAVE_DEFAULTS, type LeavePolicy } from "../model/upstream-policy.ts";
import type { Route } from "../model/view.ts";
import { probeName } from "../model/probe-message.ts";
import type { Asker } from "./asker.ts";
import { LocalNames } from "./policy/local.ts";
import { type Memory, UNKNOWN } from "./cache/memory.ts";
import { shareBits } from "./cache/shareable.ts";
import type { LoopGuard } from "./upstream/loop-guard.ts";
import { BY_STREAM } from "./ledger/ledger.ts";
import { ReverseNames } from "./policy/reverse.ts";
import { routeOf } from "./policy/route.ts";
import type { Trace } from "./trace.ts";
import { Shuffler } from "./policy/shuffle.ts";
import { SpecialNames } from "./policy/special.ts";
import { Question } from "./wire/question.ts";
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

/** Nothing is to be sent. */
export const DROPPED = 0;
/** Somebody upstream has to be asked: `takeDeferred` has what is needed for that. */
export const DEFERRED = -1;

/** More than any message, the name that is written out in it, and our own OPT. */
export const SLOT_BYTES = MESSAGE_BYTES_MAX + 512;

/** Where in a query its signature begins. */
interface Signature {
  readonly at: number;
  readonly isTsig: boolean;
}

/** A query that goes upstream, on its own: the block it came in is used again at once. */
export interface Deferred {
  /** The query as it is sent on: unusual forms made usual, trailing bytes cut off. */
  readonly query: Buffer;
  /** Where its question ends. */
  readonly questionEnd: number;
  readonly hasOpt: boolean;
  /** What the asker takes by UDP, as announced in its OPT; 0 without one. */
  readonly udpSize: number;
  /** A name that we hold, asked for a type that we do not: upstream's NXDOMAIN would deny what is there. */
  readonly isKnown: boolean;
  /** Who is to be asked. */
  readonly route: Route;
  readonly type: number;
  /** DO and CD, where the question has one answer for all who ask; NOT_SHAREABLE otherwise. */
  readonly bits: number;
  /** The name in lower case, without its end, a character a byte; and its hash. */
  readonly name: string;
  readonly nameHash: number;
  readonly isDnssecOk: boolean;
  /** Its last record, where that is a signature of the query itself. */
  readonly signature: Signature | undefined;
  /** Whom to tell what becomes of it; only where somebody has it explained. */
  readonly trace?: Trace;
}

/** What answers before somebody is asked, and what is looked out for; none of it where queries only go to the forwarder. */
export interface AnswererParts {
  readonly memory?: Memory | undefined;
  readonly guard?: LoopGuard | undefined;
  readonly leave?: LeavePolicy;
  readonly seed?: number;
}

export class Answerer {
  readonly #behaviour: Behaviour;
  readonly #parts: AnswererParts;
  readonly #special: SpecialNames;
  readonly #question: Question;
  readonly #local: LocalNames;
  readonly #reverse: ReverseNames;
  readonly #shuffler: Shuffler;
  #isKnown = false;
  #route: Route | undefined;
  #limit = 0;
  /** The type that was asked for last; 0 where the question could not be read. */
  lastType = 0;
  /** The response code that was answered last, with the part of it that stands in an OPT. */
  lastRcode = 0;
  /** How the answer comes about that is being made, one of HOW; and whether its response code takes an OPT to say. */
  #how: number = HOW.local;
  #isBadVersion = false;
  #trace: Trace | undefined;
  readonly #addressOptions: { limit: number; readonly shuffle: Shuffle; readonly behaviour: Behaviour };

  constructor(behaviour: Behaviour, parts: AnswererParts = {}) {
    this.#behaviour = behaviour;
    this.#question = new Question(behaviour.checksQueries);
    this.#parts = parts;
    const { seed = randomBytes(4).readInt32LE(0), leave = LEAVE_DEFAULTS } = parts;
    this.#special = new SpecialNames(behaviour, leave);
    this.#local = new LocalNames(behaviour);
    this.#reverse = new ReverseNames(behaviour);
    this.#shuffler = new Shuffler(seed);
    const shuffle = (count: number): Uint16Array => this.#shuffler.order(count);
    this.#addressOptions = { limit: 0, shuffle, behaviour };
  }

  /**
   * Answers the `length` bytes at `offset`, in place; the block must have SLOT_BYTES there. Returns the length of the
   * reply, DROPPED, or DEFERRED.
   */
  answer(asker: Asker, block: Buffer, offset: number, length: number, isStream: boolean): number {
    const question = this.#question;
    this.#how = HOW.local;
    this.#isBadVersion = false;
    question.nameEnd = 0;
    const result = this.#answer(asker, block, offset, length, isStream);
    if (result <= 0) return result;
    this.lastRcode = this.#isBadVersion ? RCODE.BADVERS : rcodeOf(block, offset);
    if (this.wasOurs) {
      asker.counters.queries--;
      asker.counters.local--;
    } else if (this.#trace === undefined) {
      // Who has it explained is no container.
      const flags = isStream ? this.#how | BY_STREAM : this.#how;
      asker.ledger.note(block, offset, result, question.nameEnd, question.type, this.lastRcode, flags);
    }
    return result;
  }

  /** Whether what was answered last was a probe of our own, which no container has asked. */
  get wasOurs(): boolean {
    return this.#how === HOW.ours;
  }

  #answer(asker: Asker, block: Buffer, offset: number, length: number, isStream: boolean): number {
    const question = this.#question;
    asker.counters.queries++;
    this.lastType = 0;
    switch (question.read(block, offset, length)) {
      case "ignore":
        asker.counters.ignored++;
        return DROPPED;
      case "not-implemented":
        asker.counters.malformed++;
        this.#how = HOW.refused;
        return refuseHeader(block, offset, RCODE.NOTIMP, true);
      case "malformed":
        asker.counters.malformed++;
        this.#how = HOW.refused;
        question.nameEnd = 0;
        return refuseHeader(block, offset, RCODE.FORMERR, false);
      case "malformed-behind-question":
        asker.counters.malformed++;
        this.#how = HOW.refused;
        return refuseQuestion(block, question, RCODE.FORMERR);
      case "answer":
        break;
    }
    this.lastType = question.type;
    if (this.#behaviour.speaksEdns && question.records.optCount > 0) {
      this.#how = HOW.refused;
      if (question.records.optCount > 1) return refuseQuestion(block, question, RCODE.FORMERR);
      this.#isBadVersion = question.records.optVersion > 0;
      if (this.#isBadVersion) return badVersion(block, question, this.#behaviour);
      this.#how = HOW.local;
    }
    this.#limit = sizeLimit(question.records.optUdpSize, isStream);
    const { cached } = asker.counters;
    const result = this.#decide(asker, block, isStream);
    if (result === DEFERRED) asker.counters.forwarded++;
    else if (asker.counters.cached === cached) asker.counters.local++;
    return result;
  }

  /** Answers as `answer` does, at the beginning of a block, and tells `trace` what is decided and why. */
  explain(asker: Asker, block: Buffer, length: number, isStream: boolean, trace: Trace): number | Deferred {
    this.#setTrace(trace);
    try {
      const result = this.answer(asker, block, 0, length, isStream);
      return result === DEFERRED ? { ...this.takeDeferred(block), trace } : result;
    } finally {
      this.#setTrace(undefined);
    }
  }

  /** What the last answer deferred. */
  takeDeferred(block: Buffer): Deferred {
    const { offset, end, messageEnd, records, type, folded, foldedLength, hash } = this.#question;
    const query = Buffer.allocUnsafe(messageEnd - offset);
    copyBytes(block, offset, messageEnd, query, 0);
    return {
      query,
      questionEnd: end - offset,
      hasOpt: records.optCount > 0,
      udpSize: records.optCount > 0 ? records.optUdpSize : 0,
      isKnown: this.#isKnown,
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
    const { memory } = this.#parts;
    this.#trace = this.#local.trace = this.#special.trace = trace;
    if (memory !== undefined) memory.trace = trace;
  }

  #decide(asker: Asker, block: Buffer, isStream: boolean): number {
    const question = this.#question;
    const { type } = question;
    this.#isKnown = false;
    if (this.#behaviour.checksQueries && question.class !== CLASS.IN && question.class !== CLASS.ANY) {
      return this.#decideOtherClass(asker, block);
    }
    if (type === TYPE.A || type === TYPE.AAAA || type === TYPE.MX || this.#behaviour.answersAllTypes) {
      const answer = this.#answerName(asker, block);
      if (answer !== DEFERRED) return answer;
    } else this.#trace?.passes("names", "only addresses (A, AAAA, MX) are looked up among names, as with Docker");
    if (type === TYPE.PTR) {
      const pointer = this.#reverse.find(question, asker.view);
      this.#trace?.reverses(pointer);
      if (pointer !== undefined) {
        return pointer.target === undefined
          ? failure(block, question, RCODE.SERVFAIL, this.#behaviour)
          : pointerAnswer(block, question, pointer.target, this.#behaviour, this.#limit);
      }
    } else this.#trace?.passes("reverse", "the question is not which name an address has (PTR)");
    if (type === TYPE.TXT && asker.nonce !== undefined && this.#isProbe(asker.nonce, block)) {
      asker.seenNonce[isStream ? "tcp" : "udp"] = true;
      this.#how = HOW.ours;
      return noData(block, question, this.#behaviour);
    }
    const { guard } = this.#parts;
    if (type === TYPE.TXT && guard?.isExpecting === true) {
      const { offset, nameEnd } = question;
      if (guard.sees(asker, block, offset + HEADER_BYTES, nameEnd)) {
        this.#how = HOW.ours;
        return nameError(block, question, this.#behaviour);
      }
    }
    return this.#leave(asker, block);
  }

  /** Names here are of the internet's class. What other classes know is for servers to say, but not of a name of ours. */
  #decideOtherClass(asker: Asker, block: Buffer): number {
    const question = this.#question;
    const isOurs =
      this.#local.find(block, question, asker.view) !== undefined ||
      this.#reverse.find(question, asker.view) !== undefined;
    if (!isOurs) return this.#leave(asker, block);
    this.#trace?.answers("names", "the name is known here, and the question is of another class than IN");
    this.#how = HOW.refused;
    return failure(block, question, RCODE.REFUSED, this.#behaviour);
  }

  /** What is decided of a name before it leaves: whether it does, and to whom. A route of its own goes before all rules. */
  #leave(asker: Asker, block: Buffer): number {
    const question = this.#question;
    const { upstreams } = asker.view;
    const { type } = question;
    const route = routeOf(question, upstreams);
    this.#trace?.takes(route);
    if (route.isLocal) return nameError(block, question, this.#behaviour);
    if (route.labelCount === 0) {
      const isAddress = type === TYPE.A || type === TYPE.AAAA;
      if (isAddress && question.labelCount < 2 && upstreams.isNdotsSet) {
        this.#trace?.answers("special", "ndots is set, so the addresses of names without a dot are not asked outside");
        return noData(block, question, this.#behaviour);
      }
      const special = this.#special.answer(block, question, this.#limit);
      if (special > 0) return special;
      this.#trace?.passes("special", "no name that is kept from leaving");
    } else this.#trace?.passes("special", "a route of its own goes before the rules for special names");
    this.#route = route;
    return this.#remember(asker, block, route);
  }

  /** What servers said before, if that is still good. */
  #remember(asker: Asker, block: Buffer, route: Route): number {
    const { memory } = this.#parts;
    if (memory === undefined) {
      this.#trace?.passes("cache", "nothing is kept: the switch cache is off");
      return DEFERRED;
    }
    const length = memory.answer(asker, block, this.#question, route, this.#limit, this.#isKnown);
    if (length === UNKNOWN) return DEFERRED;
    asker.counters.cached++;
    this.#how = memory.how;
    return length;
  }

  #answerName(asker: Asker, block: Buffer): number {
    const question = this.#question;
    const named = this.#local.find(block, question, asker.view);
    if (named === undefined) return DEFERRED;
    const { type } = question;
    if (type === TYPE.A || type === TYPE.AAAA) {
      const addresses = type === TYPE.A ? named.v4 : named.v6;
      if (addresses.length === 0) {
        this.#trace?.found(true, "it has no address of this family, and the answer is empty");
        return noData(block, question, this.#behaviour);
      }
      this.#trace?.found(true, "its addresses are the answer");
      this.#addressOptions.limit = this.#limit;
      return addressAnswer(block, question, addresses, type === TYPE.A ? 4 : 16, this.#addressOptions);
    }
    // A dotted name may also exist outside, with a mail exchanger or a certificate policy of its own.
    if (type === TYPE.MX || this.#local.wasQualified || question.labelCount < 2) {
      this.#trace?.found(true, "only addresses are held, and the answer for another type is empty");
      return noData(block, question, this.#behaviour);
    }
    this.#trace?.found(false, "it may exist outside, too: other types are asked there, and NXDOMAIN becomes empty");
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
