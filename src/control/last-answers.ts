/**
 * LastAnswers: when a container last got an address for a name, from the query histories. It is built for one report, and
 * reads the history of each container once.
 */
import { RCODE } from "../base/dns/rcode.ts";
import type { QueryHistories } from "../query/history/query-histories.ts";

export class LastAnswers {
  readonly #histories: Pick<QueryHistories, "histories">;
  readonly #byContainer = new Map<string, ReadonlyMap<string, number>>();

  constructor(histories: Pick<QueryHistories, "histories">) {
    this.#histories = histories;
  }

  /** `name` in lower case; on the clock of `performance.now`. */
  of(containerId: string, name: string): number | undefined {
    let answers = this.#byContainer.get(containerId);
    if (answers === undefined) {
      answers = this.#read(containerId);
      this.#byContainer.set(containerId, answers);
    }
    return answers.get(name);
  }

  #read(containerId: string): ReadonlyMap<string, number> {
    const answers = new Map<string, number>();
    for (const history of this.#histories.histories(containerId)) {
      for (const { name, rcode, answers: count, atMs } of history.since(-1)) {
        if (name !== null && rcode === RCODE.NOERROR && count > 0)
          answers.set(name.toLowerCase().replace(/\.$/, ""), atMs);
      }
    }
    return answers;
  }
}
