/**
 * KernelAnswerMemory: the answers of one namespace that the kernel repeats without asking the process. A kernel answer goes
 * from the query side, which has written it, to this memory, which the container side provides; what the kernel has
 * answered with it comes back to the history. Names may change at any time: then everything is forgotten.
 */

import type { LocalSource } from "../../base/model/local-source.ts";

/** An answer that is the same for everyone in the namespace until the names change. */
export interface KernelAnswer {
  readonly type: number;
  /** Lower-case wire labels without the root label; only the first `nameBytes` bytes are valid. */
  readonly name: Uint8Array;
  readonly nameBytes: number;
  readonly labels: number;
  readonly rcode: number;
  readonly isAuthoritative: boolean;
  /** Numbers of records. */
  readonly answers: number;
  readonly authorities: number;
  /** The records: all that follows the question, without OPT. */
  readonly message: Uint8Array;
  readonly from: number;
  readonly to: number;
  /** The size of each answer, if each reply has them in another order; else 0. */
  readonly shuffledBytes: number;
  /** Where it comes from; undefined for a probe of our own, which is neither counted nor recorded. */
  readonly source: LocalSource | undefined;
}

/** An answer that the kernel repeats for some seconds, and counts: a reply of the cache, or a failure. */
export interface BriefKernelAnswer extends Omit<KernelAnswer, "shuffledBytes" | "source"> {
  readonly source: LocalSource | "cache";
  /** To its client it is a failure: each query that gets it is counted. */
  readonly isFailure: boolean;
  readonly additionals: number;
  /** So many of the last records are addresses, of which another one is the first each time. */
  readonly rotated: number;
  /** Of a reply of the cache, offsets of the TTLs from `from`, in order; only as many are valid as there are records. */
  readonly ttlOffsets: readonly number[];
  /** The reply was to a query with DO, and with CD. */
  readonly isDnssecOk: boolean;
  readonly isUnchecked: boolean;
  /** The records were validated: AD is set for whoever requests it. */
  readonly isAuthentic: boolean;
  /** Of a reply of the cache: its TTLs began to count so long ago, and for so long nothing else changes. */
  readonly lasting: { readonly sinceMs: number; readonly forMs: number } | undefined;
}

/** A question as the kernel distinguishes it; only the first `nameBytes` bytes of the name are valid. */
export type AskedQuestion = Pick<BriefKernelAnswer, "type" | "name" | "nameBytes" | "isDnssecOk" | "isUnchecked">;

/** What answers have in common that are counted together. */
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
  /** Called before records can no longer be read, because their answers have ended. */
  onEnding: (() => void) | undefined;
  /** The same of failures. */
  onFailuresEnding: (() => void) | undefined;
  /**
   * Passes the queries since the last call, oldest first; what is passed is valid during the call only. Returns how
   * many have no record any more.
   */
  takeRepeated(visit: (answer: RepeatedAnswer) => void): number;
  /** Passes each failure that the kernel has answered since the last call, and how often. */
  takeFailed(visit: (answer: RepeatedAnswer, times: number) => void): void;
  /** Leaves queries from these source ports to the process, and from some others. */
  leave(ports: Iterable<number>): void;
  /** Returns whether the kernel repeats this answer from now on. As below, it is valid during the call only. */
  remember(answer: KernelAnswer): boolean;
  /** Whether the question has been asked often enough that its answer is worth remembering for some seconds. */
  isAskedAgain(question: AskedQuestion): boolean;
  /** Has the kernel repeat the answer to the last question that was asked again, for some seconds. */
  rememberBriefly(answer: BriefKernelAnswer): boolean;
  /** Ends all answers at once. */
  forget(): void;
}
