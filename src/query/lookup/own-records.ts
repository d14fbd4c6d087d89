/**
 * OwnRecords: what a name with records of its own means for one question: these records, the addresses of the containers that it
 * points to, or what its CNAMEs lead to. Whatever it has no records for is empty, and never forwarded.
 */
import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { LIMITS } from "../../base/limits.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import {
  ONLY_DOCKER,
  DENIED,
  FOUND,
  MISS,
  type NameAddresses,
  type NameRecords,
  type QuestionName,
} from "../../base/model/visible-names.ts";
import type { View } from "../../base/model/view.ts";
import type { AliasLink } from "../wire/alias.ts";
import type { AnswerRecord, RecordsReply } from "../wire/records-answer.ts";
import type { LocalNames } from "./local-names.ts";

/** The CNAMEs lead to a name that is not local. */
export interface UpstreamAlias {
  readonly links: readonly AliasLink[];
  readonly target: Uint8Array;
}

export class OwnRecords {
  readonly #behaviour: Behaviour;
  readonly #names: LocalNames;
  readonly #shuffler: Shuffler;
  /** The last reply used records that expire by themselves, or were not complete. */
  #isTimed = false;
  /** The length of the data of the records that were put in random order; 0 without any. */
  #shuffledBytes: 0 | 4 | 16 = 0;
  #shuffledSets = 0;

  constructor(behaviour: Behaviour, names: LocalNames, shuffler: Shuffler) {
    this.#behaviour = behaviour;
    this.#names = names;
    this.#shuffler = shuffler;
  }

  /** `own` has been found for the question, which has this type. */
  resolve(own: NameRecords, type: number, view: View): RecordsReply | UpstreamAlias {
    const links: AliasLink[] = [];
    this.#isTimed = this.#names.search.isTimed;
    this.#shuffledBytes = this.#shuffledSets = 0;
    let current = own;
    for (;;) {
      const { alias } = current;
      if (alias === undefined || current.sets.has(type)) return this.#end(links, current, type, view);
      const link = { ttlSeconds: current.ttlSeconds ?? this.#behaviour.ttlSeconds, target: alias.spelled };
      // CNAMEs that lead from one scope into another may form a loop that no file shows.
      if (links.length === LIMITS.declaredAliases) return { links, records: [], rcode: RCODE.SERVFAIL };
      links.push(link);
      if (type === TYPE.CNAME || type === TYPE.ANY) return { links, records: [], rcode: RCODE.NOERROR };
      const found = this.#find(alias, view);
      if (found === MISS) return { links, target: alias.spelled };
      // Docker's resolver must answer first; then it is decided whether the name is an alias, and of what.
      if (found === ONLY_DOCKER) return { links, records: [], rcode: RCODE.SERVFAIL };
      if (found === DENIED) return { links, records: [], rcode: RCODE.NXDOMAIN };
      if (found === FOUND)
        return { links, records: this.#addresses([this.#names.search.addresses], type), rcode: RCODE.NOERROR };
      current = this.#names.search.records as NameRecords;
    }
  }

  /**
   * Whether the last reply is the same until names change: 0, or the length of the data of its records, if their order is
   * random. Undefined if it is not, or too much of it is random.
   */
  shuffledBytesOf({ links, rcode }: RecordsReply): 0 | 4 | 16 | undefined {
    if (this.#isTimed || this.#names.unanswered !== undefined || rcode === RCODE.SERVFAIL) return undefined;
    if (this.#shuffledSets > 1 || (this.#shuffledSets === 1 && links.length > 0)) return undefined;
    return this.#shuffledBytes;
  }

  #find(name: QuestionName, view: View): number {
    const found = this.#names.find(name, view);
    if (found !== MISS) this.#isTimed ||= found === ONLY_DOCKER || this.#names.search.isTimed;
    return found;
  }

  #end(links: readonly AliasLink[], found: NameRecords, type: number, view: View): RecordsReply {
    const { zone, isMissing = false, isUnavailable = false } = found;
    if (isUnavailable) return { links, records: [], rcode: RCODE.SERVFAIL };
    return {
      links,
      records: this.#recordsOf(found, type, view),
      rcode: isMissing ? RCODE.NXDOMAIN : RCODE.NOERROR,
      additional: found.additional?.(type) ?? [],
      zone,
    };
  }

  #recordsOf(
    { sets, containers, ttlSeconds, isSorted = false }: NameRecords,
    type: number,
    view: View,
  ): AnswerRecord[] {
    const ttl = ttlSeconds ?? this.#behaviour.ttlSeconds;
    const own = [...sets].flatMap(([each, data]) =>
      type === TYPE.ANY || each === type
        ? (isSorted ? data : this.#inOrder(data, each)).map((bytes) => ({ type: each, ttlSeconds: ttl, data: bytes }))
        : [],
    );
    return containers.length === 0
      ? own
      : [...own, ...this.#addresses(this.#containersOf(containers, view), type, ttl)];
  }

  /** Containers that the client cannot resolve have no addresses for it. */
  #containersOf(containers: readonly QuestionName[], view: View): NameAddresses[] {
    return containers.flatMap((each) => (this.#find(each, view) === FOUND ? [this.#names.search.addresses] : []));
  }

  #addresses(all: readonly NameAddresses[], type: number, ttl?: number): AnswerRecord[] {
    const ttlSeconds = ttl ?? all[0]?.ttlSeconds ?? this.#behaviour.ttlSeconds;
    const isSorted = all.every((each) => each.isSorted === true);
    const of = (each: number, family: "v4" | "v6", size: number): AnswerRecord[] => {
      if (type !== each && type !== TYPE.ANY) return [];
      const data = all.flatMap((addresses) => split(addresses[family], size));
      const ordered = isSorted ? data : this.#inOrder(data, each);
      return ordered.map((bytes) => ({ type: each, ttlSeconds, data: bytes }));
    };
    return [...of(TYPE.A, "v4", 4), ...of(TYPE.AAAA, "v6", 16)];
  }

  /** Addresses in random order, other records in their order. */
  #inOrder(data: readonly Uint8Array[], type: number): readonly Uint8Array[] {
    if (data.length < 2 || (type !== TYPE.A && type !== TYPE.AAAA)) return data;
    const order = this.#shuffler.order(data.length);
    this.#shuffledBytes = type === TYPE.A ? 4 : 16;
    this.#shuffledSets++;
    return data.map((_, index) => data[order[index] as number] as Uint8Array);
  }
}

export function isUpstream(resolved: RecordsReply | UpstreamAlias): resolved is UpstreamAlias {
  return "target" in resolved;
}

function split(addresses: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: addresses.length / size }, (_, index) =>
    addresses.subarray(index * size, (index + 1) * size),
  );
}

/**
 * Draws a uniformly random order for the addresses of an answer, without allocation. It only spreads load
 * over addresses, so a small fast generator is enough; it is not for secrets.
 */
export class Shuffler {
  #state: number;
  #order = new Uint16Array(64);

  constructor(seed: number) {
    this.#state = seed | 0 || 1;
  }

  /** The numbers below `count` in random order; valid until the next call. */
  order(count: number): Uint16Array {
    if (count > this.#order.length) this.#order = new Uint16Array(count);
    const order = this.#order;
    for (let i = 0; i < count; i++) {
      const j = this.#below(i + 1);
      order[i] = order[j] as number;
      order[j] = i;
    }
    return order;
  }

  /** xorshift32, scaled to a range; for at most 65,536 the bias of scaling 2^32 steps is negligible. */
  #below(bound: number): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return Math.floor(((x >>> 0) / 0x1_0000_0000) * bound);
  }
}
