import type { RecordedQuery } from "../../api/lease.ts";
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { bareName, presentation, wireLabels } from "../../base/dns/name.ts";
import { typeName } from "../../base/dns/record-type.ts";
import { LIMITS } from "../../base/limits.ts";
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import { QUERY_RESULT } from "../../base/model/query-record.ts";
import { replyText } from "../../base/model/reply-text.ts";
import { RECORD_KINDS } from "../../config/records/record-data.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { namedContainer } from "../../control/situation/find-container.ts";
import type { Outcome } from "../../query/record/outcome.ts";

interface TapedQuery {
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

/**
 * Records what some containers asked and were answered, for a reader that takes it in pieces. Recording copies bytes; the reader parses
 * them. What nobody has taken in time is counted, not kept.
 */
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

/** Queries that are read and sent at once. */
const SLICE = 50;

/** Response codes that a rule can answer with, and none. */
const RCODES: ReadonlySet<string> = new Set(["NOERROR", "NXDOMAIN", "SERVFAIL", "REFUSED", "NONE"]);

/** Types that the settings' `records` can have. */
const TYPES: ReadonlySet<string> = new Set(Object.keys(RECORD_KINDS).map((key) => key.toUpperCase()));

/**
 * What a tape has recorded, as people and programs read it: with the names of containers and services, and the
 * records in the notation of the settings.
 */
export class Recording {
  readonly tape = new Tape();
  readonly #facts: () => ReadonlyMap<string, ContainerFact>;
  readonly #beganMs = performance.now();
  /** The names of containers that have been seen, also of those that are gone. */
  readonly #places = new Map<string, Pick<RecordedQuery, "container" | "project" | "service">>();

  constructor(facts: () => ReadonlyMap<string, ContainerFact>) {
    this.#facts = facts;
  }

  /** What is new; undefined if nothing is. */
  take(): { readonly recorded: readonly RecordedQuery[]; readonly missed: number } | undefined {
    const { queries, missed } = this.tape.take(SLICE);
    if (queries.length === 0 && missed === 0) return undefined;
    return { recorded: queries.flatMap((each) => this.#recorded(each) ?? []), missed };
  }

  /** Undefined for what no rule could answer. */
  #recorded({ containerId, atMs, name, type, reply, isLocal, isRuled }: TapedQuery): RecordedQuery | undefined {
    if (wireLabels(bareName(name)) === undefined) return undefined;
    const text = reply.length < HEADER_BYTES ? undefined : replyText(reply);
    if (!RCODES.has(text?.rcode ?? "NONE")) return undefined;
    const records: Record<string, string[]> = {};
    const cnames: string[] = [];
    for (const answer of (text?.answers ?? []).slice(0, LIMITS.declaredRecords)) {
      if (answer.type === "CNAME") cnames.push(bareName(answer.data));
      else if (TYPES.has(answer.type))
        (records[answer.type.toLowerCase()] ??= []).push(answer.type === "TXT" ? unquoted(answer.data) : answer.data);
    }
    return {
      ...this.#place(containerId),
      name: bareName(name),
      type: typeName(type),
      rcode: text?.rcode ?? "NONE",
      cnames,
      records,
      ttl: text?.answers[0]?.ttl ?? null,
      isLocal,
      isRuled,
      ms: Math.round(atMs - this.#beganMs),
    };
  }

  #place(containerId: string): Pick<RecordedQuery, "container" | "project" | "service"> {
    const fact = this.#facts().get(containerId);
    const known = this.#places.get(containerId);
    if (fact === undefined) return known ?? { container: containerId.slice(0, 12), project: null, service: null };
    const { name: container, project, service } = namedContainer(fact);
    const place = { container, project, service };
    this.#places.set(containerId, place);
    return place;
  }
}

/** The strings of a TXT record as one text, without their quotes. */
function unquoted(data: string): string {
  const strings = [...data.matchAll(/"((?:[^"\\]|\\.)*)"/gs)].map(([, text = ""]) => text.replaceAll(/\\(.)/gs, "$1"));
  return strings.length === 0 ? data : strings.join("");
}
