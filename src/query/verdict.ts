import type { NameRecords, QuestionName } from "../base/model/visible-names.ts";
import type { Outcome } from "./record/outcome.ts";
import type { AliasLink } from "./wire/alias.ts";

/**
 * Has a say in the queries of a client before they are answered, and learns of their answers. A client without one costs a look at an empty
 * field for each query, and another for each answer.
 */
export interface QueryJudge {
  /** Whether a query like the last one may be judged otherwise, or has to be noted: then the kernel does not repeat its answer. */
  readonly isCovered: boolean;
  /** Undefined if the query is answered as always. `isPeek`: it is dns11's own, and does not count. */
  judge(question: JudgedQuestion, isStream: boolean, isPeek: boolean): Verdict | undefined;
  /** A query has its answer, or gets none. The object is reused: what is wanted of it is copied. */
  note(outcome: Outcome): void;
}

export interface JudgedQuestion extends QuestionName {
  readonly type: number;
}

/** What becomes of a query that is not answered as always. */
export interface Verdict {
  readonly action: AnswerAction | DelayAction;
  /** Why and by whom, for people. */
  readonly text: string;
}

/** An answer at once, or none. */
export type AnswerAction =
  /** An answer without records: NXDOMAIN, SERVFAIL, REFUSED, or NOERROR (no data). */
  | { readonly kind: "rcode"; readonly rcode: number }
  /** No reply. */
  | { readonly kind: "drop" }
  /** An empty UDP reply that asks for TCP. */
  | { readonly kind: "truncate" }
  | { readonly kind: "reply"; readonly reply: FixedReply };

/** The usual answer, later. */
export interface DelayAction {
  readonly kind: "delay";
  readonly ms: number;
}

export interface FixedReply {
  readonly rcode: number;
  /** CNAMEs in front of the records. */
  readonly links: readonly AliasLink[];
  /** What the name has; types that it has no records of are empty. */
  readonly records: NameRecords;
}
