/**
 * LocalNames: looks up names and addresses in the sources of a view. The sources are consulted in the order of the
 * view, and the first that finds or denies a name wins.
 */
import { sameBytes, wireLabels } from "../../base/dns/name.ts";
import { LIMITS } from "../../base/limits.ts";
import type { Behaviour } from "../../base/model/behaviour.ts";
import { LOCAL_SOURCE, type LocalSource } from "../../base/model/local-source.ts";
import {
  ONLY_DOCKER,
  RECORDS,
  DENIED,
  MISS,
  NameSearch,
  type NamesTrace,
  type NameAddresses,
  type QuestionName,
  type ReverseName,
  type DockerAnswers,
  type DockerQuestion,
  type HeldName,
} from "../../base/model/visible-names.ts";
import type { View } from "../../base/model/view.ts";
import type { Question } from "../wire/question.ts";

const TREES = [
  { suffix: wireLabels("in-addr.arpa") as Uint8Array, labels: 4 },
  { suffix: wireLabels("ip6.arpa") as Uint8Array, labels: 32 },
];
const SUFFIX_LABELS = 2;

const KNOWN = "from Docker's resolver";
const LAST_KNOWN = "from the last answer of Docker's resolver, which does not answer now";

export class LocalNames {
  readonly #behaviour: Behaviour;
  /** The result of the last search. */
  readonly search: NameSearch;
  source: LocalSource = LOCAL_SOURCE.rule;
  /** What Docker's resolver answered the client. */
  docker: DockerAnswers | undefined;
  /** What Docker's resolver must be asked before the query can be answered. */
  dockerQuestion: DockerQuestion | undefined;
  /** Set where Docker's resolver does not answer: the name may be one that only it knows, so it is not forwarded. */
  unanswered: HeldName | undefined;
  /** Set where a name is denied: how long clients may keep that; undefined for as long as any name of ours. */
  denialSeconds: number | undefined;

  constructor(behaviour: Behaviour) {
    this.#behaviour = behaviour;
    this.search = new NameSearch(behaviour);
  }

  set trace(trace: NamesTrace | undefined) {
    this.search.trace = trace;
  }

  /** Resets what the last query has set. */
  begin(docker: DockerAnswers): void {
    this.docker = docker;
    this.dockerQuestion = this.unanswered = undefined;
  }

  /** MISS, FOUND, DENIED, RECORDS, or ONLY_DOCKER with `dockerQuestion`. */
  find(name: QuestionName, { names }: View): number {
    for (const source of names) {
      const found = source.find(name, this.search);
      if (found === MISS) continue;
      const decided = found === ONLY_DOCKER ? this.#fromDocker(this.search.dockerQuestion as DockerQuestion) : found;
      if (decided === MISS) continue;
      const isForeign = decided === RECORDS && this.search.records?.isForeign === true;
      this.source = isForeign ? LOCAL_SOURCE.otherMachine : source.kind;
      if (decided === DENIED) this.denialSeconds = source.denialSeconds;
      return decided;
    }
    return MISS;
  }

  /** Whether a source has the name, or may have it. */
  knows(name: QuestionName, view: View): boolean {
    const found = this.find(name, view);
    this.dockerQuestion = undefined;
    return found !== MISS && found !== DENIED;
  }

  #fromDocker(dockerQuestion: DockerQuestion): number {
    const { search } = this;
    const { whose } = dockerQuestion;
    const answer = this.docker?.find(dockerQuestion);
    if (answer === undefined) {
      this.dockerQuestion = dockerQuestion;
      return ONLY_DOCKER;
    }
    if (answer.kind === "known") {
      const { v4, v6, isLast } = answer;
      search.trace?.record("names", `a name of ${whose}, ${isLast === true ? LAST_KNOWN : KNOWN}`);
      return search.found({ v4, v6, ttlSeconds: LIMITS.askedTtlSeconds }, dockerQuestion.isOnlyHere, true);
    }
    if (answer.kind === "away") {
      const { reason } = answer;
      this.unanswered = { whose, reason };
      search.trace?.record("names", `it may be a name of ${whose}, and ${reason}`);
      return MISS;
    }
    search.trace?.record("names", "Docker's resolver does not know it");
    return dockerQuestion.isDenied ? DENIED : MISS;
  }

  /** The name of an address that only Docker's resolver knows; undefined if it must be asked. */
  #pointerFromDocker(dockerQuestion: DockerQuestion): ReverseName | undefined {
    const answer = this.docker?.find(dockerQuestion);
    if (answer === undefined) this.dockerQuestion = dockerQuestion;
    else if (answer.kind === "known")
      return { target: answer.target, ttlSeconds: LIMITS.askedTtlSeconds, dockerQuestion };
    else if (answer.kind === "away") this.unanswered = { whose: dockerQuestion.whose, reason: answer.reason };
    // It is nobody else's: the virtual address of a service, for example, has no name.
    else if (dockerQuestion.isDenied) return { target: undefined, ttlSeconds: LIMITS.askedTtlSeconds, dockerQuestion };
    return undefined;
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
      return pointer.dockerQuestion === undefined ? pointer : this.#pointerFromDocker(pointer.dockerQuestion);
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

/** Says in an explanation that containers were left out because of their health. */
export function leftOutText({ leftOut = 0 }: NameAddresses): string {
  return leftOut === 0 ? "" : `, without those of ${leftOut} that are not healthy`;
}
