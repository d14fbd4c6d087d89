/**
 * BriefRound: entries of one namespace and generation that were written within the same 10 s, and end and are deleted together.
 */
import { BRIEF_KEY_BYTES, ROUND_INDEX_MAX } from "./layout.ts";

const KEYS_FIRST = 16;
/** Beyond that the process answers what fails. */
const FAILING_MAX = 1_024;

/** A failure, and how many of its answers have been taken. */
interface FailingEntry {
  readonly index: number;
  taken: number;
}

export class BriefRound {
  readonly number: number;
  readonly generation: number;
  readonly beganNs: number;
  /** When nobody can be reading its entries any more; undefined as long as more are written. */
  endNs: number | undefined;
  readonly failing: FailingEntry[] = [];
  #keys = Buffer.alloc(0);
  #count = 0;

  constructor(number: number, generation: number, beganNs: number) {
    this.number = number;
    this.generation = generation;
    this.beganNs = beganNs;
  }

  get count(): number {
    return this.#count;
  }

  /** All keys, one after the other. */
  get keys(): Buffer {
    return this.#keys.subarray(0, this.#count * BRIEF_KEY_BYTES);
  }

  keyOf(index: number): Buffer {
    return this.#keys.subarray(index * BRIEF_KEY_BYTES, (index + 1) * BRIEF_KEY_BYTES);
  }

  takes(isFailure: boolean): boolean {
    return this.#count <= ROUND_INDEX_MAX && (!isFailure || this.failing.length < FAILING_MAX);
  }

  add(key: Buffer, isFailure: boolean): void {
    if (isFailure) this.failing.push({ index: this.#count, taken: 0 });
    const at = this.#count++ * BRIEF_KEY_BYTES;
    if (at === this.#keys.length) {
      const longer = Buffer.allocUnsafeSlow(Math.max(KEYS_FIRST * BRIEF_KEY_BYTES, 2 * at));
      this.#keys.copy(longer);
      this.#keys = longer;
    }
    key.copy(this.#keys, at);
  }
}
