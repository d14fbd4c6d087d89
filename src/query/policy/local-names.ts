/**
 * LocalNames: looks up names and addresses in the sources of a view. The sources are consulted in the order of the
 * view, and the first that finds or denies a name wins.
 */
import { sameBytes, wireLabels } from "../../base/dns/name.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import { LOCAL_SOURCE, type LocalSource } from "../../base/model/local-source.ts";
import {
  MISS,
  NameSearch,
  type NamesTrace,
  type QuestionName,
  type ReverseName,
} from "../../base/model/visible-names.ts";
import type { View } from "../../base/model/view.ts";
import type { Question } from "../wire/question.ts";

const TREES = [
  { suffix: wireLabels("in-addr.arpa") as Uint8Array, labels: 4 },
  { suffix: wireLabels("ip6.arpa") as Uint8Array, labels: 32 },
];
const SUFFIX_LABELS = 2;

export class LocalNames {
  readonly #behaviour: Behaviour;
  /** The last result, and where it is from. */
  readonly search: NameSearch;
  source: LocalSource = LOCAL_SOURCE.rule;

  constructor(behaviour: Behaviour) {
    this.#behaviour = behaviour;
    this.search = new NameSearch(behaviour);
  }

  set trace(trace: NamesTrace | undefined) {
    this.search.trace = trace;
  }

  /** MISS, FOUND, DENIED or DECLARED. */
  find(name: QuestionName, { names }: View): number {
    for (const source of names) {
      const found = source.find(name, this.search);
      if (found === MISS) continue;
      this.source = source.kind;
      return found;
    }
    return MISS;
  }

  /** Names below in-addr.arpa and ip6.arpa. */
  reverse(question: Question, { names }: View): ReverseName | undefined {
    if (question.hasUpperCase && !this.#behaviour.ignoresCase) return undefined;
    const labels = question.labelCount - SUFFIX_LABELS;
    if (labels < 1 || !this.#isReverse(question, labels)) return undefined;
    const length = question.lengthOf[labels] as number;
    const hash = question.hashOf[labels] as number;
    for (const source of names) {
      const pointer = source.pointer(question.folded, length, hash, this.#behaviour);
      if (pointer === undefined) continue;
      this.source = source.kind;
      return pointer;
    }
    return undefined;
  }

  /** Docker compares only the suffix, so that an IPv4 address is also found below ip6.arpa. */
  #isReverse(question: Question, labels: number): boolean {
    const start = question.lengthOf[labels] as number;
    const length = question.foldedLength - start;
    return TREES.some(
      ({ suffix, labels: expected }) =>
        (expected === labels || !this.#behaviour.reversesAllIpv6) &&
        suffix.length === length &&
        sameBytes(question.folded, start, suffix, 0, length),
    );
  }
}
