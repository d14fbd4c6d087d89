import type { Behaviour } from "../base/model/behaviour.ts";
import type { Share } from "../base/lib/share.ts";
import type { LocalSource } from "../base/model/local-source.ts";
import type { QueryResult } from "../base/model/query-record.ts";
import type { DockerQuestion } from "../base/model/visible-names.ts";
import type { Outcome, QueryRefusal } from "./record/outcome.ts";
import type { Trace } from "./trace.ts";
import type { Alias, AliasLink } from "./wire/alias.ts";
import type { Question } from "./wire/question.ts";

/**
 * Decides what a client may ask and be answered: it stands before each step of an answer, and behind it. A client without one costs a
 * look at an empty field for each step. Steps return UNDECIDED where the next one decides, or the length of a refusal, which is written
 * over the query.
 */
export interface QueryPolicy {
  /** Otherwise it only records, and what is asked leaves as it is. */
  readonly isEnforcing: boolean;
  /** The question has been read, and every other step is still to come. */
  begin(query: CurrentQuery, block: Buffer): number;
  /** A source of this machine has the name. */
  local(query: CurrentQuery, block: Buffer, source: LocalSource): number;
  /** The name of this machine leads to others, which are its answer. */
  targets(query: CurrentQuery, block: Buffer, links: readonly AliasLink[]): number;
  /** Docker's resolver would be asked. */
  ask(query: CurrentQuery, block: Buffer, ask: DockerQuestion): number;
  /** A judge would answer it. `isLocal`: it is a name of this machine. */
  judged(query: CurrentQuery, block: Buffer, isLocal: () => boolean): number;
  /** It would be forwarded, or answered from the cache. */
  forward(query: CurrentQuery, block: Buffer): number;
  /** It is not cached, so it would leave the machine. Returns DEFERRED if it does, or the length of a reply. */
  leave(query: CurrentQuery, block: Buffer): number;
  /** The reply of `length` bytes is written. Returns its length, that of another in its place, or DEFERRED: then the query has `held`. */
  pass(query: CurrentQuery, block: Buffer, offset: number, length: number): number;
  /** A query that was forwarded is answered by a server, or by none, in the era in which it was asked. */
  answered(answer: ForwardedAnswer, era: number): void;
  /**
   * The answer is about to be given. Calls back once: at once, unless it waits. The reply need not outlive this call; one that waits is
   * charged to the share.
   */
  passForwarded(answer: ForwardedAnswer, share: Share, give: (passed: PassedAnswer) => void): void;
}

/** The query that is being answered: one object serves all, and is read before the next one. */
export interface CurrentQuery {
  readonly behaviour: Behaviour;
  readonly question: Question;
  readonly outcome: Outcome;
  /** The longest reply that the client accepts. */
  readonly limit: number;
  readonly trace: Trace | undefined;
  readonly era: number;
  /** The answer that waits, if the last query has one. */
  held: HeldAnswer | undefined;
}

/** A query in its own memory: the block that it came in is reused at once. */
export interface AskedQuery {
  /** As it is forwarded: normalized, without trailing bytes. */
  readonly query: Buffer;
  /** Where its question ends. */
  readonly questionEnd: number;
  readonly hasOpt: boolean;
  /** The client's UDP payload size, from its OPT; 0 without an OPT. */
  readonly udpSize: number;
  readonly isDnssecOk: boolean;
  readonly type: number;
  /** The name in lower case, without the root label, one character per byte. */
  readonly name: string;
  /** It is set if the question is the target of the client's: the CNAME of a name leads to it. */
  readonly alias?: Alias | undefined;
  /** The policy that has judged it, and what it refused, or would have. */
  readonly policy?: QueryPolicy | undefined;
  readonly refusal?: QueryRefusal | undefined;
  /** dns11 itself sent it. */
  readonly isOwn?: boolean | undefined;
  /** A query that is being explained has one. */
  readonly trace?: Trace;
}

export type Transport = "udp" | "tcp";

export interface ForwardedAnswer {
  readonly deferred: AskedQuery;
  readonly transport: Transport;
  readonly reply: Uint8Array;
  readonly result: QueryResult;
}

/** What the client is given. */
export interface PassedAnswer {
  readonly reply: Uint8Array;
  readonly result: QueryResult;
  /** Set if a policy refuses it. */
  readonly refusal?: QueryRefusal;
}

/** An answer that waits, such as until connections to its addresses are possible. */
export interface HeldAnswer {
  readonly reply: Buffer;
  readonly result: QueryResult;
  readonly source: LocalSource;
  /** Calls back once, with whether it may be given. Otherwise the query fails. */
  readonly wait: (onOpen: (isOpen: boolean) => void) => void;
}

/** Ends when servers may answer otherwise: what they have answered before is not given again then, and what is in flight not kept. */
export class AnswerEra {
  number = 0;

  end(): void {
    this.number++;
  }
}
