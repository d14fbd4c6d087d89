/**
 * AnswerKinds: the answers of all namespaces, counted by the program for each kind of answer. There are few kinds, because
 * few types and sources have answers that are repeated; of too many, the rest is one.
 */
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import type { AnswerKind } from "./kernel-answer.ts";
import { COUNT_BYTES, KINDS } from "./layout.ts";

/** The kind of our own probes, which are not counted. */
export const OWN_KIND = 0;
const REST = KINDS - 1;

export class AnswerKinds {
  readonly #memory: DataView;
  readonly #numbers = new Map<string, number>();
  readonly #kinds: AnswerKind[] = [];
  /** The number that was asked for last: after a change of names it is most often the same again. */
  #last: number = REST;
  /** The number of answers of each kind that were taken. */
  readonly #taken = new Float64Array(KINDS);

  constructor(memory: ArrayBuffer) {
    this.#memory = new DataView(memory);
    this.#kinds[REST] = { type: 0, rcode: 0, source: LOCAL_SOURCE.rule };
  }

  /** Its number, for the program. */
  numberOf({ type, rcode, source }: AnswerKind): number {
    const last = this.#kinds[this.#last];
    if (last?.type === type && last.rcode === rcode && last.source === source) return this.#last;
    const key = `${type} ${rcode} ${source}`;
    const known = this.#numbers.get(key);
    if (known !== undefined) return (this.#last = known);
    const number = this.#numbers.size + 1;
    if (number >= REST) return REST;
    this.#numbers.set(key, number);
    this.#kinds[number] = { type, rcode, source };
    return (this.#last = number);
  }

  /** Undefined for our own probes. */
  kindOf(number: number): AnswerKind | undefined {
    return this.#kinds[number];
  }

  /** Passes the answers since the last call, by kind. */
  takeCounts(visit: (kind: AnswerKind, answers: number) => void): void {
    for (const [number, kind] of this.#kinds.entries()) {
      if (kind === undefined) continue;
      const answered = Number(this.#memory.getBigUint64(number * COUNT_BYTES, true));
      const fresh = answered - (this.#taken[number] as number);
      if (fresh === 0) continue;
      this.#taken[number] = answered;
      visit(kind, fresh);
    }
  }
}
