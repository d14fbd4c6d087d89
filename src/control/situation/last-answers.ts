/**
 * LastAnswers: when a container last got an address for a name, and from whom, out of the query histories. It is built for one
 * report, and reads the history of each container once.
 */
import { RCODE } from "../../base/dns/rcode.ts";
import type { QueryHistory } from "../../query/history/query-history.ts";

/** The query histories, as far as answers need them. */
export interface AnswerHistories {
  readonly histories: (containerId: string) => Iterable<Pick<QueryHistory, "since">>;
}

export interface LastAnswer {
  /** A time of the clock of `performance.now`. */
  readonly atMs: number;
  /** It came from an upstream server, or from the cache. */
  readonly isFromUpstream: boolean;
}

export class LastAnswers {
  readonly #histories: AnswerHistories;
  readonly #byContainer = new Map<string, ReadonlyMap<string, LastAnswer>>();

  constructor(histories: AnswerHistories) {
    this.#histories = histories;
  }

  /** The keys are names in lower case. */
  of(containerId: string): ReadonlyMap<string, LastAnswer> {
    let answers = this.#byContainer.get(containerId);
    if (answers === undefined) {
      answers = this.#read(containerId);
      this.#byContainer.set(containerId, answers);
    }
    return answers;
  }

  #read(containerId: string): ReadonlyMap<string, LastAnswer> {
    const answers = new Map<string, LastAnswer>();
    for (const history of this.#histories.histories(containerId)) {
      for (const { name, rcode, answers: count, atMs, result } of history.since(-1)) {
        if (name === null || rcode !== RCODE.NOERROR || count === 0) continue;
        answers.set(name.toLowerCase(), { atMs, isFromUpstream: result !== "local" });
      }
    }
    return answers;
  }
}
