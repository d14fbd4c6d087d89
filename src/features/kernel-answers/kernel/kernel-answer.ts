/**
 * KernelAnswerMemory: the answers of one namespace that the kernel repeats without the process. The query side writes an answer and gives
 * it to this memory, which the container side provides; the queries that the kernel has answered with it come back to the history. Names
 * may change at any time: then all answers are forgotten.
 */

import type { LocalSource } from "../../../base/model/local-source.ts";

/** An answer that is the same for every client in the namespace until the names change. */
export interface KernelAnswer {
  readonly type: number;
  /** Lower-case wire labels without the root label; only the first `nameBytes` bytes are valid. */
  readonly name: Uint8Array;
  readonly nameBytes: number;
  readonly labels: number;
  readonly rcode: number;
  readonly isAuthoritative: boolean;
  /** The numbers of records. */
  readonly answers: number;
  readonly authorities: number;
  /** The records: all that follows the question, without OPT. */
  readonly message: Uint8Array;
  readonly from: number;
  readonly to: number;
  /** The size of each answer's data, if each reply has the answers in another order; else 0. */
  readonly shuffledBytes: number;
  /** Where it comes from; undefined for dns11's own probe, which is neither counted nor recorded. */
  readonly source: LocalSource | undefined;
}

/** An answer that the kernel repeats for some seconds, and counts: a reply of the cache, or a failure. */
export interface BriefKernelAnswer extends Omit<KernelAnswer, "shuffledBytes" | "source"> {
  readonly source: LocalSource | "cache";
  /** The client sees a failure, so each query that gets it is counted. */
  readonly isFailure: boolean;
  readonly additionals: number;
  /** How many of the last records are addresses that change their order each time. */
  readonly rotated: number;
  /** The offsets of the TTLs of a cached reply, from `from` and in order; only as many are valid as there are records. */
  readonly ttlOffsets: readonly number[];
  /** Whether the reply was to a query with DO; then whether with CD. */
  readonly isDnssecOk: boolean;
  readonly isUnchecked: boolean;
  /** The records were validated: AD is set for clients that request it. */
  readonly isAuthentic: boolean;
  /** For a cached reply: how long ago its TTLs began to count, and for how long nothing else changes. */
  readonly lasting: { readonly sinceMs: number; readonly forMs: number } | undefined;
}

/** A question as the kernel distinguishes it; only the first `nameBytes` bytes of the name are valid. */
export type KernelQuestion = Pick<BriefKernelAnswer, "type" | "name" | "nameBytes" | "isDnssecOk" | "isUnchecked">;

/** What is the same for answers that are counted together. */
export interface AnswerKind {
  readonly type: number;
  readonly rcode: number;
  readonly source: LocalSource | "cache";
}

/** A query that the kernel has answered: with which answer, and when. */
export interface RepeatedAnswer extends AnswerKind {
  /** The answer as a message, with the name in lower case; it has no id and no flags. */
  readonly message: Uint8Array;
  readonly length: number;
  /** Where its name ends. */
  readonly nameEnd: number;
  /** A time of the clock of `performance.now`, to a few milliseconds. */
  readonly atMs: number;
}

export interface KernelAnswerMemory {
  /** Queries answered by the kernel so far, and the part of them that got cached replies. */
  readonly answered: number;
  readonly answeredFromCache: number;
  /** Whether there are records of single queries. */
  isRecording: boolean;
  /** Called before records of queries are lost, because their answers have ended. */
  onEnding: (() => void) | undefined;
  /** Called before counts of failures are lost, because their answers have ended. */
  onFailuresEnding: (() => void) | undefined;
  /**
   * Passes the queries since the last call, oldest first; what is passed is valid during the call only. Returns how
   * many have no record any more.
   */
  takeRepeated(visit: (answer: RepeatedAnswer) => void): number;
  /** Passes each failure that the kernel has answered since the last call, and how often. */
  takeFailed(visit: (answer: RepeatedAnswer, times: number) => void): void;
  /** Leaves queries from these source ports to the process; others with the same last eight bits go there, too. */
  leave(ports: Iterable<number>): void;
  /** Has the kernel repeat this answer from now on; returns whether it does. The answer is valid during the call only. */
  remember(answer: KernelAnswer): boolean;
  /** Whether the question has been asked often enough that its answer is worth remembering for some seconds. */
  isAskedAgain(question: KernelQuestion): boolean;
  /** Has the kernel repeat the answer to the last question that was asked again, for some seconds. */
  rememberBriefly(answer: BriefKernelAnswer): boolean;
  /** Ends all answers at once. */
  forget(): void;
}
