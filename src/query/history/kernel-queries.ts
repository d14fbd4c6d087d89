/**
 * KernelQueries: the queries of one container with a kernel answer, as outcomes for its history. The kernel has
 * the last of them, which are read when somebody reads the history: nothing is woken up for a query.
 */
import type { KernelAnswerMemory, RepeatedAnswer } from "../../base/model/kernel-answer.ts";
import { RepeatedOutcome } from "../record/repeated-outcome.ts";
import type { KernelAnswered, QueryHistory } from "./query-history.ts";

export class KernelQueries implements KernelAnswered {
  readonly #memory: KernelAnswerMemory;
  readonly #history: QueryHistory;
  readonly #outcome = new RepeatedOutcome();

  constructor(memory: KernelAnswerMemory, history: QueryHistory) {
    this.#memory = memory;
    this.#history = history;
    this.switched();
  }

  switched(): void {
    this.#memory.isRecording = this.#history.isEnabled;
  }

  read(): void {
    const next = this.#history.lastSeq + 1;
    const skipped = this.#memory.takeRepeated((answer) => this.#note(answer));
    if (skipped > 0) this.#history.skip(next, skipped);
  }

  #note(answer: RepeatedAnswer): void {
    this.#history.tick(answer.atMs);
    this.#history.note(this.#outcome.of(answer));
  }
}
