/**
 * KernelQueries: the queries of one container with a kernel answer, as outcomes for its history. The kernel has
 * the last of them, which are read when somebody reads the history: nothing is woken up for a query.
 */
import type { KernelAnswerMemory, RepeatedAnswer } from "../../base/model/kernel-answer.ts";
import { QUERY_RESULT } from "../../base/model/query-record.ts";
import { Outcome, STAGE } from "../record/outcome.ts";
import type { KernelAnswered, QueryHistory } from "./query-history.ts";

export class KernelQueries implements KernelAnswered {
  readonly #memory: KernelAnswerMemory;
  readonly #history: QueryHistory;
  readonly #outcome = new Outcome();

  constructor(memory: KernelAnswerMemory, history: QueryHistory) {
    this.#memory = memory;
    this.#history = history;
    memory.onEnding = () => this.read();
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

  #note({ type, rcode, source, message, length, nameEnd, atMs }: RepeatedAnswer): void {
    const outcome = this.#outcome;
    outcome.begin(message, 0, false);
    outcome.stage = STAGE.local;
    outcome.result = QUERY_RESULT.local;
    outcome.source = source;
    outcome.type = type;
    outcome.rcode = rcode;
    outcome.nameEnd = nameEnd;
    outcome.length = length;
    this.#history.tick(atMs);
    this.#history.note(outcome);
  }
}
