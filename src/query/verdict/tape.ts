/**
 * Tape: records what some containers asked and were answered, for a reader that takes it in pieces. Recording copies bytes;
 * the reader parses them. What nobody has taken in time is counted, not kept.
 */
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { presentation } from "../../base/dns/name.ts";
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import { QUERY_RESULT } from "../../base/model/query-record.ts";
import type { Outcome } from "../record/outcome.ts";

export interface TapedQuery {
  readonly containerId: string;
  /** On the clock of `performance.now`. */
  readonly atMs: number;
  /** As it was asked. */
  readonly name: string;
  readonly type: number;
  /** The whole reply; empty if there was none. */
  readonly reply: Buffer;
  /** It is the answer of a source of names: a container's, or a declared one. */
  readonly isLocal: boolean;
  /** It was not answered as always, because of a rule. */
  readonly isRuled: boolean;
}

const QUERIES_MAX = 10_000;
const BYTES_MAX = 4 * 2 ** 20;
/** A longer reply is not recorded: with compressed names its text can be a hundred times as long. */
const REPLY_BYTES_MAX = 4_096;

export class Tape {
  readonly #queries: TapedQuery[] = [];
  #bytes = 0;
  #missed = 0;

  note(containerId: string, outcome: Outcome): void {
    const { question, reply, at, length, type, nameEnd, rule } = outcome;
    if (nameEnd === 0) return;
    if (length > REPLY_BYTES_MAX || this.#queries.length >= QUERIES_MAX || this.#bytes + length > BYTES_MAX) {
      this.#missed++;
      return;
    }
    this.#bytes += length;
    const copy = Buffer.from(reply.subarray(at, at + length));
    const isLocal = outcome.result === QUERY_RESULT.local && outcome.source !== LOCAL_SOURCE.rule;
    const name = presentation(question, at + HEADER_BYTES, nameEnd);
    const atMs = performance.now();
    this.#queries.push({ containerId, atMs, name, type, reply: copy, isLocal, isRuled: rule !== undefined });
  }

  /** The first of what was recorded since the last call, at most so many; and how much was lost. */
  take(most: number): { readonly queries: readonly TapedQuery[]; readonly missed: number } {
    const queries = this.#queries.splice(0, most);
    for (const { reply } of queries) this.#bytes -= reply.length;
    const missed = this.#missed;
    this.#missed = 0;
    return { queries, missed };
  }
}
