/**
 * Recording: what a tape has recorded, as people and programs read it: with the names of containers and services, and the
 * records in the notation of the settings.
 */
import type { RecordedQuery } from "../../api/lease.ts";
import { HEADER_BYTES } from "../../base/dns/header.ts";
import { bareName, wireLabels } from "../../base/dns/name.ts";
import { typeName } from "../../base/dns/record-type.ts";
import { LIMITS } from "../../base/limits.ts";
import { replyText } from "../../base/model/reply-text.ts";
import { RECORD_KINDS } from "../../config/records/record-data.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { Tape, type TapedQuery } from "../../query/verdict/tape.ts";
import { namedContainer } from "../containers/find-container.ts";

/** Queries that are read and sent at once. */
const SLICE = 50;
/** Response codes that a rule can answer with, and none. */
const RCODES: ReadonlySet<string> = new Set(["NOERROR", "NXDOMAIN", "SERVFAIL", "REFUSED", "NONE"]);
/** Types that the settings' `records` can have. */
const TYPES: ReadonlySet<string> = new Set(Object.keys(RECORD_KINDS).map((key) => key.toUpperCase()));

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
