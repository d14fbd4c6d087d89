/** Unpredictable 16-bit numbers, drawn from the system's generator many at a time. */
import { randomFillSync } from "node:crypto";

const AT_ONCE = 4096;

export class RandomIds {
  readonly #numbers = new Uint16Array(AT_ONCE);
  #next = AT_ONCE;

  next(): number {
    if (this.#next === AT_ONCE) {
      randomFillSync(this.#numbers);
      this.#next = 0;
    }
    return this.#numbers[this.#next++] as number;
  }
}
