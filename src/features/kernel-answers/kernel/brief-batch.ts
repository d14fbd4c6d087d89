/**
 * BriefBatch: entries of one namespace and generation that were written within the same 5 s, and end and are deleted together.
 */
import { KeyList } from "./key-list.ts";
import { BRIEF_KEY_BYTES, BATCH_INDEX_MAX } from "./layout.ts";

/** A failure, and how many times its answer has been counted. */
interface FailingEntry {
  readonly index: number;
  taken: number;
}

export class BriefBatch {
  readonly number: number;
  readonly generation: number;
  readonly beganNs: number;
  /** When no program can be reading its entries any more; undefined while entries are added. */
  endNs: number | undefined;
  readonly failing: FailingEntry[] = [];
  readonly keys = new KeyList(BRIEF_KEY_BYTES);

  constructor(number: number, generation: number, beganNs: number) {
    this.number = number;
    this.generation = generation;
    this.beganNs = beganNs;
  }

  get isFull(): boolean {
    return this.keys.count > BATCH_INDEX_MAX;
  }

  add(key: Buffer, isFailure: boolean): void {
    if (isFailure) this.failing.push({ index: this.keys.count, taken: 0 });
    this.keys.add(key);
  }
}
