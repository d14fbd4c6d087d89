/**
 * AnswerMemory: the answers of one namespace that the kernel repeats without asking the process. The query side tells it
 * what it has answered; the container side provides it. What the names are may change at any time: then everything is
 * forgotten.
 */

/** An answer that is the same for everyone in the namespace until the names change. */
export interface KnownAnswer {
  readonly type: number;
  /** Lower-case wire labels without the root label; only the first `nameBytes` bytes are valid. */
  readonly name: Uint8Array;
  readonly nameBytes: number;
  readonly labels: number;
  readonly rcode: number;
  /** Numbers of records. */
  readonly answers: number;
  readonly authorities: number;
  /** The records: all that follows the question, without OPT. */
  readonly message: Uint8Array;
  readonly from: number;
  readonly to: number;
  /** Of each answer, if each reply has them in another order; else 0. */
  readonly shuffledBytes: number;
}

export interface AnswerMemory {
  /** Queries answered by the kernel so far. */
  readonly answered: number;
  /** Returns whether the kernel repeats this answer from now on. */
  remember(answer: KnownAnswer): boolean;
  /** Ends all answers at once. */
  forget(): void;
}
