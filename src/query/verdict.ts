import type { NameRecords, QuestionName } from "../base/model/visible-names.ts";
import type { Outcome } from "./record/outcome.ts";
import type { AliasLink } from "./wire/alias.ts";
import type { Step } from "../base/model/query-record.ts";

/**
 * Decides queries of a client before they are answered, and learns of their answers. For a client without one, each query and each answer
 * costs a look at an empty field.
 */
export interface QueryJudge {
  /** Whether a query like the last one may be decided otherwise, or must be noted: then the kernel does not repeat its answer. */
  readonly isCovered: boolean;
  /** Undefined if the query is answered as always. `isPeek`: it is dns11's own, and does not count. */
  judge(question: JudgedQuestion, isStream: boolean, isPeek: boolean): Verdict | undefined;
  /** A query has its answer, or gets none. The object is reused, so copy what is needed. */
  note(outcome: Outcome): void;
}

export interface JudgedQuestion extends QuestionName {
  readonly type: number;
}

/** What becomes of a query that is not answered as always. */
export interface Verdict {
  readonly action: AnswerAction | DelayAction;
  /** Why, and by which rule, as text for people. */
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

/**
 * Takes records out of the answers to a client, wherever they come from: names of this machine, the cache, a server. The cache keeps whole
 * replies, because other clients get all records. A policy judges, and opens, what is left.
 */
export interface AnswerFilter {
  /** What it leaves out and why, as text for people. */
  readonly text: string;
  /** The rest of a reply, at most `limit` bytes and valid until the next call; undefined if nothing is taken out. */
  apply(reply: Uint8Array, limit: number): Uint8Array | undefined;
}

interface ForwardedQuery {
  /** Undefined if it is not signed. */
  readonly signature: unknown;
  readonly trace?: { record(layer: Step["layer"], why: string): void };
}

/** The answer to a query that was forwarded. One that is signed cannot be changed. */
export function filteredReply(
  filter: AnswerFilter,
  reply: Uint8Array,
  limit: number,
  { signature, trace }: ForwardedQuery,
): Uint8Array {
  const left = signature === undefined ? filter.apply(reply, limit) : undefined;
  if (left !== undefined) trace?.record("filter", filter.text);
  return left ?? reply;
}
