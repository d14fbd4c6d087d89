/**
 * AnswerFilter: takes records out of the answers to a client, wherever they come from: names of this machine, the cache, a server.
 * What is cached is whole, as others get all of it. A policy judges, and opens, what is left.
 */
import type { Step } from "../base/model/step.ts";

export interface AnswerFilter {
  /** What it leaves out and why, for people. */
  readonly text: string;
  /** What is left of a reply, within so many bytes and valid until the next call; undefined if nothing is taken out. */
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
